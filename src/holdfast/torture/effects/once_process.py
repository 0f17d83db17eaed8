"""One process that makes attempts of a `once`, and strikes itself: it stops or dies at the worst moments.

Whoever is about to stop says at which key. Others come back to it: they take it over, and are done when it wakes up.
"""

from __future__ import annotations

import time

from ... import Coordinator
from ...errors import AttemptInProgress, BackendUnavailable, FenceRejected
from .ledger import EffectLedger
from .worker import WorkerContext, worker_context

KEYS_PER_SECOND_COUNT = 40
WINDOW_COUNT = 8
"""All workers are at the same few keys, and those move on with the time."""
STOPS_LOOKED_RATIO = 0.15
"""Between the look and the write there is nothing but the fence: where it is missing, a stop is worth most there."""
STRUCK_RATIO = 0.5
STRUCK_COUNT = 6
"""At so many of the last struck keys others look again."""


class OnceProcess:
    """Attempts, one after the other."""

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self._ledger = EffectLedger(context.folder / "ledger.db")

    def work(self, locks: Coordinator) -> None:
        context, config = self._context, self._context.config
        once = locks.once("payments", keep="1h", takeover="rerun", ttl=config.ttl, wait=4 * config.ttl)
        while not context.ending.is_set():
            key = self._key()
            try:
                with once.attempt(key) as attempt:
                    if attempt.done:
                        context.tell("seen", key, attempt.result)
                        continue
                    self._strike("begun", key)
                    self._apply(key, attempt.token)
                    self._strike("applied", key)
                    result = f"{config.worker}:{attempt.token}"
                    attempt.complete(result)
                    context.tell("completed", key, result)
            except FenceRejected:
                context.tell("refused", key)
            except (AttemptInProgress, BackendUnavailable) as error:
                context.tell("failed", key, type(error).__name__)

    def _key(self) -> str:
        """One of the present ones, or one at which a worker has stopped."""
        chance = self._context.chance
        if chance.random() < STRUCK_RATIO and (struck := self._ledger.struck(STRUCK_COUNT)):
            return chance.choice(struck)
        return f"k{int(time.time() * KEYS_PER_SECOND_COUNT) + chance.randrange(WINDOW_COUNT)}"

    def _apply(self, key: str, token: int) -> None:
        config = self._context.config
        if config.fenced:
            self._ledger.apply(key, token, config.worker)
        else:
            self._ledger.apply_unfenced(
                key, token, config.worker, lambda: self._strike("looked", key, STOPS_LOOKED_RATIO)
            )

    def _strike(self, moment: str, key: str, stops: float | None = None) -> None:
        """The worst moments: between the claim and the effect, and between the effect and its result."""
        self._context.strike(moment, stops, before=lambda: self._ledger.strike(key))


if __name__ == "__main__":
    context = worker_context()
    context.run(OnceProcess(context).work)
