"""Two threads of faults, one for the clients and one for the engine, each by a chance of its own from the seed.

1. The n-th fault of a side is the same in every run of a seed, however long each takes.
2. One side strikes one fault at a time; both sides together make the combinations.
3. An engine does not forget while a token that it has given out lies ahead of its clock, and its clock is not set back
   behind what it has forgotten: such a fault is put off, which is counted. No design survives that; see guarantees.md.
4. An error in a strike ends the weather and is told: a fault that silently does nothing would make a run look good.
"""

from __future__ import annotations

import random
import threading
import time

from ..faults import Kind, Stage
from .plan import Plan


class Weather:
    """The faults of a run, while it lasts."""

    def __init__(self, plan: Plan, stages: list[tuple[str, Stage]], ending: threading.Event) -> None:
        self._plan = plan
        self._ending = ending
        self.errors: list[BaseException] = []
        self.put_off = 0
        self._threads = [
            threading.Thread(target=self._blow, args=(stage, kinds), name=f"weather-{side}")
            for side, stage in stages
            if (kinds := [kind for kind in plan.kinds if kind.side == side and kind.weight and self._runs(kind, stage)])
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _runs(kind: Kind, stage: Stage) -> bool:
        return not kind.reason(stage.engine)

    def _blow(self, stage: Stage, kinds: list[Kind]) -> None:
        try:
            while True:
                self._ending.wait(stage.chance.uniform(0.1, 1.0) * self._plan.calm)
                if self._ending.is_set():
                    return
                kind = stage.chance.choices(kinds, [kind.weight for kind in kinds])[0]
                if kind.conflicts(stage):
                    self.put_off += 1
                    continue
                kind.strike(stage)
                if kind.forgets:
                    stage.forgot_at = time.time()
                if stage.engine is not None and (kind.restarts or kind.forgets) and stage.engine.steps_ahead:
                    stage.ahead_until = max(stage.ahead_until, time.time()) + stage.engine.steps_ahead
        except BaseException as error:  # noqa: BLE001  told to the run, which fails
            self.errors.append(error)

    def over(self) -> None:
        for thread in self._threads:
            thread.join()


def chance_of(seed: int, *words: str) -> random.Random:
    return random.Random("/".join([str(seed), *words]))
