"""The keeper: keeps all leases of a coordinator. It has two halves, so that nothing keeps a loss from being told:

1. The watch (`look`) looks at the clock and at the holds, and starts renewals. It sends no request, runs no code of a
   user's (hooks run beside it, see `Holder`), and waits for no lock that is held over either. So a deadline that has
   passed is a loss at once, even while every renewal hangs for ever.
2. Renewals run beside the watch, in batches: what falls due while one is under way joins the next. A hold whose
   renewal has not come back by half of the time that was left is renewed once more, by another renewal if the one
   under way does not end, `RENEWERS` at the same time at most: who hangs keeps nobody else from being renewed.
3. One failed renewal never ends renewal: the hold is in jeopardy and is tried again until its deadline. A renewal
   that was ended from outside (its task was cancelled) has its holds due again, and the watch starts the next one.
4. A hold that was released or lost is never renewed again; nor is one whose lease nobody has any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ..errors import OutcomeUnknown
from ..model import Extension, Refusal
from ..ports import Backend
from .flow import NOW, RANDOM, Flow, WaitEvent, WakeEvent
from .lease import NEVER, Hold, Renewal
from .renewal_schedule import RenewalSchedule

RENEWERS = 3
"""So many renewals are under way at the same time at most."""

TOO_LATE = 0.05
"""With less than so many seconds left a renewal is not asked for once more: its reply would come too late."""

SHORT_OF_THREADS = 0.02
"""When to try again if a renewal could not be started, in seconds."""

BATCH = 512
"""Claims in one renewal request: few requests, none so long that it keeps others from the engine."""


class Keeper:
    """Keeps what was put into it, with the help of a driver.

    `launch` makes the driver call `look` (or run `watch`) for as long as the coordinator lives; it is called whenever
    something is due earlier than the watch sleeps for and `launched` is not set. `begin` runs a flow beside the watch,
    and answers False if it could not be started. A renewal that has nothing left to do waits for more for `linger`
    seconds, at `more`: where it costs a thread to begin one.
    """

    def __init__(
        self,
        backend: Backend,
        calendar: RenewalSchedule,
        event: WakeEvent,
        launch: Callable[[Keeper], None],
        begin: Callable[[Flow[None]], bool],
        more: WakeEvent | None = None,
        linger: float = 0.0,
    ) -> None:
        self._backend = backend
        self._calendar = calendar
        self.enter = calendar.put
        """`put`, for a caller that wakes the keeper itself: it must, if the answer is True."""
        self.discard = calendar.discard
        self._bell = event
        self._launch = launch
        self._begin = begin
        self._more = more
        self._linger = linger
        self._backlog: deque[Hold] = deque()
        self._renewers: set[object] = set()
        self._overdue = False
        """A renewal has not come back in time: the backlog does not wait for it."""
        self.dropped: Callable[[Hold], None] = lambda hold: None
        """Called with a hold whose lease nobody has any more."""
        self.launched = False
        self.closed = False

    def put(self, hold: Hold) -> None:
        if self._calendar.put(hold):
            self.wake()

    def wake(self) -> None:
        """Something is due earlier than what the watch sleeps for."""
        if not self.launched:
            self._launch(self)
        self._bell.set()

    def close(self) -> None:
        self.closed = True
        self._bell.set()
        if self._more is not None:
            self._more.set()

    def watch(self) -> Flow[None]:
        """The watch as a flow: look, and sleep until something is due."""
        while not self.closed:
            at = self.look((yield NOW))
            yield WaitEvent(self._bell, None if at == NEVER else max(0.0, at - (yield NOW)))

    def look(self, now: float) -> float:
        """Tell whose time is over, and have renewed what is due. Answers when to look again."""
        while due := self._calendar.pop_due(now):
            for hold in due:
                self._attend(hold, now)
        if self._backlog and not self._see_to_renewal():
            return min(now + SHORT_OF_THREADS, self._calendar.waking_at)
        return self._calendar.waking_at

    def _attend(self, hold: Hold, now: float) -> None:
        if not hold.alive:
            return
        if hold.abandoned and not hold.forgotten:
            hold.renew_at = NEVER
            self.dropped(hold)
        if (reason := hold.over(now)) is not None:
            hold.lose(reason)
            return
        # Slots come early: a renewal that is nearly due joins this batch, a deadline waits for a finer slot.
        if now >= hold.renew_at - (hold.deadline - hold.renew_at) / 8:
            left = (hold.deadline - now) / 2
            hold.renew_at = now + left if left > TOO_LATE else NEVER
            if hold.renewal is not Renewal.NONE:
                self._overdue = True
            if hold.renewal is not Renewal.QUEUED:
                hold.renewal = Renewal.QUEUED
                self._backlog.append(hold)
        self._calendar.put(hold)

    def _see_to_renewal(self) -> bool:
        """Have somebody renew the backlog; False if nobody could be found."""
        if self._renewers and not (self._overdue and len(self._renewers) < RENEWERS):
            if self._more is not None:
                self._more.set()
            return True
        self._overdue = False
        self._renewers.add(me := object())
        if self._begin(self._renew_backlog(me)):
            return True
        self._renewers.discard(me)
        return False

    def _renew_backlog(self, me: object) -> Flow[None]:
        """Renew, batch after batch, until nothing is left to do."""
        try:
            while not self.closed:
                if holds := self._next_batch():
                    yield from self._renew(holds)
                    continue
                if not self._linger or self._more is None:
                    return
                yield WaitEvent(self._more, self._linger)
                if not self._backlog:
                    return
        finally:
            self._renewers.discard(me)
            if self._backlog:  # it fell due between the last look and this line
                self._bell.set()

    def _next_batch(self) -> list[Hold]:
        batch: list[Hold] = []
        while len(batch) < BATCH:
            try:
                hold = self._backlog.popleft()  # another renewal may take from it, too
            except IndexError:
                break
            hold.renewal = Renewal.SENT
            if hold.alive:
                batch.append(hold)
        return batch

    def _renew(self, holds: list[Hold]) -> Flow[None]:
        """One batch. Whatever happens to it, its holds are due again (rule 3)."""
        try:
            replies = yield from self._backend.renew([hold.granted() for hold in holds])
            now: float = yield NOW
            for hold, reply in zip(holds, replies, strict=True):
                if reply is None:
                    hold.failure = "nobody could tell whether it was renewed"
                    hold.falter(now, (yield RANDOM))
                else:
                    settle(hold, reply, now)
        except Exception as error:  # noqa: BLE001  whatever it was, renewal goes on until the deadline
            now = yield NOW
            chance: float = yield RANDOM
            for hold in holds:
                hold.failure = str(error) or type(error).__name__
                hold.falter(now, chance)
        except BaseException:  # cancelled; nothing may be yielded here
            for hold in holds:
                hold.renew_at = hold.since
            raise
        finally:
            for hold in holds:
                self._return(hold)

    def _return(self, hold: Hold) -> None:
        if hold.renewal is Renewal.SENT:
            hold.renewal = Renewal.NONE
        self.put(hold)
        if not hold.alive:  # over, or released from another thread meanwhile
            self.discard(hold)


def settle(hold: Hold, reply: Extension | Refusal, now: float) -> None:
    """Apply what the engine said of a renewal."""
    if isinstance(reply, Refusal):
        hold.lose(reply.reason)
    else:
        hold.extend(reply.since, reply.ttl, now)
        if reply.asked:
            hold.heed()


def renew_now(backend: Backend, hold: Hold) -> Flow[None]:
    """One renewal at the holder's own wish."""
    [reply] = yield from backend.renew([hold.granted()])
    if reply is None:
        raise OutcomeUnknown(f"nobody could tell whether {hold.claim.spec.name!r} was renewed; try again")
    settle(hold, reply, (yield NOW))
