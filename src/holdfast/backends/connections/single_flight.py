"""One attempt at a time at something that many flows need.

1. The attempt runs beside whoever needs what it comes to, and each waits for as long as it has time. All who wait are
   told what comes of it.
2. It has until the deadline of whoever began it, and `least_s` at least: others wait for it, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from ..._core.flow import NEW_EVENT, NOW, Flow, Spawn, WaitDial, WakeEvent

T = TypeVar("T")


class Flight(Generic[T]):
    """An attempt under way, and its outcome."""

    def __init__(self) -> None:
        self.begun = False
        self.waiters: list[WakeEvent] = []
        self.results: list[T] = []
        self.error: Exception | None = None

    @property
    def over(self) -> bool:
        return bool(self.results) or self.error is not None

    def end(self) -> None:
        for event in self.waiters:
            event.set()
        self.waiters.clear()


class SingleFlight(Generic[T]):
    """`attempt(deadline)` is the flow that is run."""

    def __init__(self, attempt: Callable[[float], Flow[T]], least_s: float) -> None:
        self._flow = attempt
        self._least_s = least_s
        self._attempt: Flight[T] | None = None

    def begin(self, deadline: float) -> Flow[Flight[T]]:
        """The attempt under way; a new one if there is none.

        One that has not begun is begun: who made it may have been interrupted right then.
        """
        if (attempt := self._attempt) is None:
            attempt = self._attempt = Flight()
        if not attempt.begun:
            now: float = yield NOW
            if (yield Spawn(self._run(attempt, max(deadline, now + self._least_s)))) is False:
                self._fail(attempt, OSError("no thread could be started for it"))
        return attempt

    def _run(self, attempt: Flight[T], deadline: float) -> Flow[None]:
        if attempt.begun:
            return
        attempt.begun = True
        try:
            result = yield from self._flow(deadline)
        except Exception as error:  # noqa: BLE001  told to those who wait
            self._fail(attempt, error)
            return
        except BaseException:  # somebody has cancelled all tasks of the loop: the next begins anew
            self._fail(attempt, OSError("it was cancelled"))
            raise
        if not attempt.over:
            attempt.results.append(result)
            self._attempt = None
            attempt.end()

    def _fail(self, attempt: Flight[T], error: Exception) -> None:
        if not attempt.over:
            attempt.error = error
            self._attempt = None
            attempt.end()

    def wait(self, deadline: float) -> Flow[T]:
        """What the attempt under way comes to; `TimeoutError` at the deadline."""
        attempt = yield from self.begin(deadline)
        event: WakeEvent = yield NEW_EVENT
        attempt.waiters.append(event)
        try:
            while not attempt.over:
                now: float = yield NOW
                if now >= deadline:
                    raise TimeoutError("it was not done in time")
                yield WaitDial(event, deadline - now)
        finally:
            if event in attempt.waiters:
                attempt.waiters.remove(event)
        if attempt.error is not None:
            raise once_more(attempt.error)
        return attempt.results[0]

    def fail(self, error: Exception) -> None:
        """Whoever waits is told this; what comes of the attempt is for nobody."""
        if self._attempt is not None:
            self._fail(self._attempt, error)


def once_more(error: Exception) -> Exception:
    """The same error, for one more flow that is told."""
    try:
        again = type(error)(str(error))
    except TypeError:
        return error
    again.__cause__ = error
    return again
