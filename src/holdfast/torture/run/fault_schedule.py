"""Two threads that inject faults, one into the clients and one into the engine, each with its own random generator.

1. The n-th fault of a side is the same in every run of a seed, however long each takes.
2. Each side injects one fault at a time; both sides together make the combinations.
3. An engine does not lose its data while a token that it has granted is ahead of its clock, and its clock is not set
   back behind a token that it has lost: such a fault is put off and counted. No design survives it; see guarantees.md.
4. An error in a fault ends the schedule and fails the run: a fault without effect would make a run look good.
"""

from __future__ import annotations

import random
import threading
import time

from ..faults import FaultContext, FaultKind
from .plan import Plan


class FaultSchedule:
    """The faults of a run, while it runs."""

    def __init__(self, plan: Plan, contexts: list[tuple[str, FaultContext]], ending: threading.Event) -> None:
        self._plan = plan
        self._ending = ending
        self.errors: list[BaseException] = []
        self.put_off = 0
        self._threads = [
            threading.Thread(target=self._inject_faults, args=(context, kinds), name=f"faults-{side}")
            for side, context in contexts
            if (
                kinds := [
                    kind for kind in plan.kinds if kind.side == side and kind.weight and self._runs(kind, context)
                ]
            )
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _runs(kind: FaultKind, context: FaultContext) -> bool:
        return not kind.reason(context.engine)

    def _inject_faults(self, context: FaultContext, kinds: list[FaultKind]) -> None:
        try:
            while True:
                self._ending.wait(context.chance.uniform(0.1, 1.0) * self._plan.calm)
                if self._ending.is_set():
                    return
                kind = context.chance.choices(kinds, [kind.weight for kind in kinds])[0]
                if kind.conflicts(context):
                    self.put_off += 1
                    continue
                kind.inject(context)
                if kind.forgets:
                    context.forgot_at = time.time()
                if context.engine is not None and (kind.restarts or kind.forgets) and context.engine.steps_ahead:
                    context.ahead_until = max(context.ahead_until, time.time()) + context.engine.steps_ahead
        except BaseException as error:  # noqa: BLE001  told to the run, which fails
            self.errors.append(error)

    def over(self) -> None:
        for thread in self._threads:
            thread.join()


def chance_of(seed: int, *words: str) -> random.Random:
    return random.Random("/".join([str(seed), *words]))
