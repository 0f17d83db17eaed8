"""How a member of a partition runs beside its user's threads, waits, and calls hooks: by threads of its own.

A hook cannot be ended from outside: at its deadline it is left behind, and nobody waits for it any longer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..observe.log_exception import log_exception
from .hooks import Beside

MAX_HOOKS_COUNT = 64
"""So many hooks of one member run at the same time; what comes beyond waits for one of them to end."""
STOP_POLL_S = 0.1
"""How often a stop is looked at that belongs to the user, whom nobody wakes."""


class HookCall:
    """A hook that is being called, after another one for the same shard has ended.

    It is not called if `when` does not hold by then: it has failed, too.
    """

    def __init__(
        self,
        call: Callable[[], object],
        after: HookCall | None,
        when: Callable[[], bool],
        ended: Callable[[], None],
    ) -> None:
        self.failed = False
        self.after = after
        """The one before it, until this one has ended."""
        self._call = call
        self._when = when
        self._turn = [True]  # popped by whoever calls or skips it: one of them wins
        self._ended = ended
        self._done = threading.Event()

    @property
    def done(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self._done.is_set()

    def abandon(self) -> None:
        """Its time is over."""

    def skip(self) -> bool:
        """Do not call it. False: that has begun, or is over."""
        if not self._has_turn():
            return False
        self.failed = True
        self._done.set()
        return True

    def wait(self) -> None:
        """Until it has ended."""
        self._done.wait()

    def run(self) -> None:
        """On a thread of its own. The one before it was started earlier, so it has a thread already."""
        try:
            if self.after is not None and not self.done:
                self.after.wait()
            if not self._when():
                self.skip()
            elif self._has_turn():
                self._call()
        except BaseException:  # noqa: BLE001  it is not our code
            self.failed = True
            log_exception("the hook %r raised", self._call)
        finally:
            self.after = None
            self._done.set()
            self._ended()

    def _has_turn(self) -> bool:
        try:
            return self._turn.pop()
        except IndexError:
            return False


class HookCalls:
    """Calls hooks."""

    def __init__(self) -> None:
        self._beside = Beside(MAX_HOOKS_COUNT)

    def start(
        self,
        call: Callable[[], object],
        ended: Callable[[], None],
        after: HookCall | None,
        when: Callable[[], bool],
    ) -> HookCall:
        """Begin to call a hook; `ended` is called when that is over."""
        hook = HookCall(call, after, when, ended)
        self._beside.call(HookCall.run, hook)
        return hook


class Background:
    """Something that goes on beside its user."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  raised where its end is waited for
            self._error = error

    def abandon(self) -> None:
        """It is no longer wanted: a thread cannot be ended from outside, and looks for itself."""

    def wait(self) -> None:
        """Wait for its end, however it has ended."""
        self._thread.join()

    def join(self) -> None:
        """Wait for its end; raises what it has raised."""
        self.wait()
        if self._error is not None:
            raise self._error


def wait_event(event: threading.Event, timeout: float | None) -> None:
    """Until it is set, or the time is over."""
    event.wait(timeout)


def wait_first(stop: threading.Event | None, wake: threading.Event, timeout: float) -> None:
    """Until one of them is set, or the time is over."""
    while timeout > 0 and (stop is None or not stop.is_set()):
        pause = timeout if stop is None else min(timeout, STOP_POLL_S)
        if wake.wait(pause):
            return
        timeout -= pause


def finish(work: Callable[[], None]) -> None:
    """Do it to its end: a thread is not cancelled."""
    work()
