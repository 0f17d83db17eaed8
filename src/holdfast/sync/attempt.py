# Generated from src/holdfast/aio/attempt.py by `make generate`: change that file, not this one.
"""One attempt of a `once`, for threads. The rules are in `recipes.once`."""

from __future__ import annotations

import socket
import threading
from copy import deepcopy
from os import getpid
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast
from weakref import ref

from .._core.pickling import unpicklable
from ..clock import calendar_us, now
from ..errors import AttemptFailed, AttemptInDoubt, FenceRejected, HoldfastError, LeaseLost, Misconfigured
from ..model import State, check_name
from ..observe.log_exception import error_text, log_exception
from ..recipes import once as flows
from ..recipes.once import AttemptSpec, Dead, Finished, Running
from ..recipes.once_record import ENDED, FAILED, RUNNING, Completed, JsonCodec, Origin, encoded
from ..registry import notice_fork
from .decorator import call_policy

if TYPE_CHECKING:
    from .coordinator import Coordinator

_HOST = socket.gethostname()


class Attempt:
    """One attempt at the work of a key. Look at `done` first; if it is not, do the work and `complete` it."""

    def __init__(self, coordinator: Coordinator, spec: AttemptSpec) -> None:
        self._coordinator = coordinator
        self._core = coordinator._core
        self._spec = spec
        self._plan = spec.plan
        self._running: Running | None = None
        self._result: bytes | None = None
        self._over = False
        self._completing = False
        self.key = spec.key
        """What it is an attempt at."""

    __reduce__ = unpicklable("hand on its key and its token")

    @property
    def done(self) -> bool:
        """Whether there is a result, of this attempt or of one before it."""
        return self._result is not None

    @property
    def result(self) -> Any:
        """The result, decoded; raises `Misconfigured` if there is none yet."""
        if self._result is None:
            raise Misconfigured(f"{self!r} has no result yet; look at `done` first, and `complete` it")
        return self._plan.codec.decode(self._result)

    @property
    def token(self) -> int:
        """The fencing token of this attempt, larger than that of every attempt of its key before it."""
        return self._ours().hold.token

    @property
    def number(self) -> int:
        """How many attempts there were, this one included."""
        return self._ours().record.number

    @property
    def phases(self) -> dict[str, Any]:
        """The phases that were reached, by this attempt and by those before it, each with its value."""
        return deepcopy(dict(self._ours().record.phases))

    @property
    def lost(self) -> threading.Event:
        """Set once others may think that nobody is at it any more; a thread can wait for it."""
        hold = self._ours().hold
        if hold.lost_event is None:
            with self._coordinator._mutex:
                hold.lost_event = hold.lost_event or threading.Event()
        if hold.state is State.LOST:
            hold.lost_event.set()
        return cast(threading.Event, hold.lost_event)

    def check(self) -> None:
        """Raise `LeaseLost` if others may think that nobody is at it any more: before an effect that has no fence."""
        self._ours().hold.check(now())

    def phase(self, name: str, value: object = None) -> None:
        """Remember that a phase was reached, with a value that JSON can hold: an attempt after a crash finds it in
        `phases`. Raises `FenceRejected` if another attempt has taken over."""
        check_name(name, "phase")
        running = self._ours()
        codec = JsonCodec()
        data = encoded(codec, value, self._plan.max_bytes, f"the phase {name!r} of {self.key!r}")
        kept = codec.decode(data)  # as those after a crash find it; and the user may go on to change the value
        self._coordinator._run(flows.advance(self._core, self._plan, running, name, kept))

    def complete(self, result: object = None) -> None:
        """Remember the result. Raises `FenceRejected` if another attempt has taken over: then its result stands."""
        running, plan = self._ours(), self._plan
        self._completing = True
        try:
            data = encoded(plan.codec, result, plan.max_bytes, f"{self.key!r} ({plan.name!r})")
        except Misconfigured as error:
            self._end(RUNNING, f"the result could not be kept: {error}")
            raise
        try:
            self._coordinator._run(flows.complete(self._core, plan, running, data))
        except FenceRejected:
            self._over = True
            raise
        self._over = True
        self._result = data

    def abandon(self, reason: str = "abandoned") -> None:
        """End the attempt without a result: another one may begin."""
        self._ours()
        self._end(ENDED, reason)

    def __enter__(self) -> Attempt:
        if self._running is not None or self._result is not None:
            raise Misconfigured(f"{self!r} was entered before; ask for another attempt")
        try:
            self._begin()
        except BaseException:
            self._withdraw()
            raise
        return self

    def _begin(self) -> None:
        coordinator = self._coordinator
        if coordinator._core.pid != (pid := getpid()):
            notice_fork()  # before its core is used: that of the parent would not keep it alive
        core = self._core = coordinator._core
        origin = Origin(_HOST, pid, calendar_us() / 1e6)
        actor, take_over = coordinator._actors.current(False), 0
        while True:
            begun = coordinator._run(flows.begin(core, self._spec, origin, actor, self._started, take_over))
            if not isinstance(begun, Dead):
                break
            take_over = self._take_over(begun)
        if isinstance(begun, Finished):
            if begun.record.state == FAILED:
                raise AttemptFailed(self._plan.name, self.key, begun.record.error)
            self._result = begun.record.result

    def _started(self, running: Running) -> None:
        self._running = running
        running.hold.lease = ref(self)

    def _withdraw(self) -> None:
        """After an interruption that struck when it had started: its body will not run, and it would be kept alive."""
        if self._running is not None:
            self._over = True
            self._coordinator._run(flows.withdraw(self._core, self._plan, self._running))

    def _take_over(self, dead: Dead) -> int:
        """The version of the dead attempt, if it may be succeeded; 0 to look again. Raises if it may not."""
        plan, policy = self._plan, self._plan.takeover
        decision = policy if isinstance(policy, str) else call_policy(policy, "a policy of once", dead.view)
        if isinstance(decision, Completed):
            data = encoded(plan.codec, decision.result, plan.max_bytes, f"{self.key!r} ({plan.name!r})")
            self._coordinator._run(flows.settle(self._coordinator._core, self._spec, dead, data))
            return 0
        if decision == "rerun":
            return dead.version
        if decision == "refuse":
            where = f"{dead.view.host}, process {dead.view.pid}"
            raise AttemptInDoubt(plan.name, self.key, dead.version, where)
        raise Misconfigured(
            f"takeover of {plan.name!r} answered {decision!r} for {self.key!r}; it answers 'rerun', 'refuse', or "
            "Completed(result)"
        )

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._running is None or self._over or self._is_forked(self._running):
            return
        if error is None:
            self._end_without_result()
            return
        state = RUNNING  # in doubt, if it cannot be decided
        try:
            state = self._state_after(error)
        except Exception:  # noqa: BLE001  the error of the body matters more
            log_exception("on_error of %r could not decide about %r, which is in doubt now", self._plan.name, self.key)
        finally:
            try:
                self._end(state, error_text(error))
            except HoldfastError:
                pass  # nobody touches the record any more, so it is soon a dead one

    def _end_without_result(self) -> None:
        """The body has ended, and nothing was remembered. If `complete` has failed, the work is done: in doubt."""
        if self._completing:
            self._end(RUNNING, "complete() failed")
            raise Misconfigured(
                f"the body of {self!r} ended although complete() had failed: the attempt is in doubt, and takeover= "
                "decides; let the error of complete() through"
            )
        self._end(ENDED, "left without complete()")
        raise Misconfigured(
            f"the body of {self!r} ended without complete(): nothing is remembered, and the work will be done "
            "again; call attempt.complete(result), or attempt.abandon()"
        )

    def _state_after(self, error: BaseException) -> str:
        """Ended or failed, as `on_error` says.

        Like a crash is whatever is no `Exception` (a cancellation, Ctrl-C), and a result that could not be remembered:
        the work is done then, and must not simply be repeated.
        """
        if self._completing or not isinstance(error, Exception):
            return RUNNING
        policy = self._plan.on_error
        decision = policy if isinstance(policy, str) else call_policy(policy, "a policy of once", error)
        if decision not in ("retry", "remember"):
            raise Misconfigured(
                f"on_error of {self._plan.name!r} answered {decision!r}; it answers 'retry' or 'remember'"
            )
        return ENDED if decision == "retry" else FAILED

    def _end(self, state: str, reason: str) -> None:
        self._over = True
        running = self._running
        if running is not None:
            self._coordinator._run(flows.end(self._core, self._plan, running, state, reason))

    def _ours(self) -> Running:
        """The attempt under way; raises if there is none."""
        if self._running is None or self._over:
            state = "is done" if self.done else "is over" if self._over else "has not begun: enter it as a context"
            raise Misconfigured(f"{self!r} {state}")
        if self._is_forked(self._running):
            raise LeaseLost(self.key, self._running.hold.token, "forked")
        return self._running

    def _is_forked(self, running: Running) -> bool:
        """Whether this is a child of the process that makes the attempt: its record is none of the child's business."""
        if self._core.pid != getpid():
            notice_fork()
        return running.hold.reason == "forked"

    def _told(self, what: str) -> None:
        """For the keeper: a step in the life of this attempt."""
        if self._running is not None:
            hold = self._running.hold
            self._core.observe(hold, what, now() - hold.since)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._plan.name!r} {self.key!r}>"
