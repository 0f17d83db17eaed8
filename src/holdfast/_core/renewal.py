"""The keeper: renews all leases of a coordinator. It has two halves, so that nothing delays the report of a loss:

1. The watch (`look`) compares the clock with the holds, and starts renewals. It sends no request, runs no code of the
   user (hooks run elsewhere, see `Holder`), and waits for no lock that is held during either. So a deadline that has
   passed is a loss at once, even while every renewal hangs for ever.
2. Renewals run in other threads or tasks, in batches: what falls due while one is in flight joins the next. A hold
   whose renewal is not answered by half of the time that was left is renewed once more, by another renewal if the one
   in flight does not end, at most `RENEWER_COUNT` at a time: a renewal that hangs does not delay the others.
3. One failed renewal never ends renewal: the hold is in jeopardy and is tried again until its deadline. A renewal
   that was ended from outside (its task was cancelled) has its holds due again, and the watch starts the next one.
4. A hold that was released or lost is never renewed again; nor is one whose lease was garbage-collected.
5. Such a one ends with its ttl. Where the engine does not see to that, it is released then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from ..errors import BackendUnavailable, OutcomeUnknown
from ..model import ATTEMPT_MODE, Claim, Extension, Refusal
from ..observe.observer import Observer
from ..ports import AnyBackend, Records
from .flow import NOW, RANDOM, Flow, WaitEvent, WakeEvent
from .lease import NEVER, Hold, Renewal
from .renewal_schedule import RenewalSchedule
from .withdraw import release_until_done

RENEWER_COUNT = 3
"""How many renewals may be in flight at a time."""

LAST_REQUEST_S = 0.05
"""With less time left a renewal is not sent once more: its reply would come too late."""

THREAD_RETRY_S = 0.02
"""When to try again if a renewal could not be started (no thread was free)."""

BATCH_COUNT = 512
"""Claims in one renewal request: few requests, none so long that it blocks the engine for others."""


class Keeper:
    """Renews the holds that were put into it, with the help of a driver.

    `launch` makes the driver call `look` (or run `watch`) for as long as the coordinator lives; it is called whenever
    something is due earlier than the watch sleeps for and `launched` is not set. `begin` runs a flow in another
    thread or task, and returns False if it could not be started. A renewal that has nothing left to do waits for
    `linger` seconds at `more`, where beginning one costs a thread.
    """

    def __init__(
        self,
        backend: AnyBackend,
        schedule: RenewalSchedule,
        event: WakeEvent,
        launch: Callable[[Keeper], None],
        begin: Callable[[Flow[None]], bool],
        more: WakeEvent | None = None,
        linger: float = 0.0,
    ) -> None:
        self._backend = backend
        self._schedule = schedule
        self.enter = schedule.put
        """`put`, for a caller that wakes the keeper itself: it must, if the result is True."""
        self.discard = schedule.discard
        self._wake_event = event
        self._launch = launch
        self._begin = begin
        self._more = more
        self._linger = linger
        self._backlog: deque[Hold] = deque()
        self._renewers: set[object] = set()
        self._overdue = False
        """A renewal was not answered in time: the backlog does not wait for it."""
        self.dropped: Callable[[Hold], None] = lambda hold: None
        """Called with a hold whose lease was garbage-collected."""
        self.observer: Observer | None = None
        """Is told of renewals."""
        self.launched = False
        self.closed = False

    def put(self, hold: Hold) -> None:
        if self._schedule.put(hold):
            self.wake()

    def wake(self) -> None:
        """Wake the watch: something is due earlier than it sleeps."""
        if not self.launched:
            self._launch(self)
        self._wake_event.set()

    def close(self) -> None:
        self.closed = True
        self._wake_event.set()
        if self._more is not None:
            self._more.set()

    def watch(self) -> Flow[None]:
        """The watch as a flow: look, and sleep until something is due."""
        while not self.closed:
            at = self.look((yield NOW))
            yield WaitEvent(self._wake_event, None if at == NEVER else max(0.0, at - (yield NOW)))

    def look(self, now: float) -> float:
        """Report holds whose deadline has passed, and start the renewals that are due. Returns when to look again."""
        while due := self._schedule.pop_due(now):
            for hold in due:
                self._attend(hold, now)
        if self._backlog and not self._see_to_renewal():
            return min(now + THREAD_RETRY_S, self._schedule.waking_at)
        return self._schedule.waking_at

    def _attend(self, hold: Hold, now: float) -> None:
        if not hold.alive:
            return
        if hold.abandoned and not hold.forgotten:
            hold.renew_at = NEVER
            self.dropped(hold)
        if (reason := hold.over(now)) is not None:
            hold.lose(reason)
            if hold.forgotten and "ttl" in self._backend.promises.lacks:
                self._begin(release_until_done(self._backend, hold.claim))  # rule 5
            return
        # Slots come early: a renewal that is nearly due joins this batch, a deadline waits for a finer slot.
        if now >= hold.renew_at - (hold.deadline - hold.renew_at) / 8:
            if self.observer is not None and hold.renew_at > hold.since:
                self.observer.meter.late(max(0.0, now - hold.renew_at))
            left = (hold.deadline - now) / 2
            hold.renew_at = now + left if left > LAST_REQUEST_S else NEVER
            if hold.renewal is not Renewal.NONE:
                self._overdue = True
            if hold.renewal is not Renewal.QUEUED:
                hold.renewal = Renewal.QUEUED
                self._backlog.append(hold)
        self._schedule.put(hold)

    def _see_to_renewal(self) -> bool:
        """Let a renewal take the backlog; False if none could be started."""
        if self._renewers and not (self._overdue and len(self._renewers) < RENEWER_COUNT):
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
                self._wake_event.set()

    def _next_batch(self) -> list[Hold]:
        batch: list[Hold] = []
        while len(batch) < BATCH_COUNT:
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
        observer = self.observer
        try:
            began: float = 0.0 if observer is None else (yield NOW)
            replies = yield from renew_claims(self._backend, [hold.granted() for hold in holds])
            now: float = yield NOW
            if observer is not None:
                observer.meter.request("renew", now - began)
            for hold, reply in zip(holds, replies, strict=True):
                if reply is None:
                    hold.failure = "nobody could tell whether it was renewed"
                    hold.falter(now, (yield RANDOM))
                else:
                    settle(hold, reply, now, observer)
        except Exception as error:  # noqa: BLE001  whatever it was, renewal goes on until the deadline
            now = yield NOW
            chance: float = yield RANDOM
            if observer is not None and isinstance(error, BackendUnavailable):
                observer.unreached(holds[0].claim, error, beside=True)
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


def settle(hold: Hold, reply: Extension | Refusal, now: float, observer: Observer | None = None) -> None:
    """Apply the engine's answer to a renewal."""
    if isinstance(reply, Refusal):
        hold.lose(reply.reason)
    else:
        if observer is not None and hold.alive:
            observer.renewed(hold.claim, hold.token, hold.valid_until - now, now - hold.since)
        hold.extend(reply.since, reply.ttl, now)
        if reply.asked:
            hold.heed()


def renew_claims(backend: AnyBackend, claims: list[Claim]) -> Flow[Sequence[Extension | Refusal | None]]:
    """Renew holds, and touch the records of attempts, which are kept alive in the same way."""
    attempts = [claim for claim in claims if claim.spec.mode == ATTEMPT_MODE]
    if not attempts or not isinstance(backend, Records):
        return (yield from backend.renew(claims))
    sent: float = yield NOW
    touched = yield from backend.touch_records(attempts)
    said: dict[str, Extension | Refusal | None] = {
        claim.owner: None if alive is None else Extension(sent, claim.spec.ttl) if alive else Refusal("refused")
        for claim, alive in zip(attempts, touched, strict=True)
    }
    if locks := [claim for claim in claims if claim.spec.mode != ATTEMPT_MODE]:
        replies = yield from backend.renew(locks)
        said |= {claim.owner: reply for claim, reply in zip(locks, replies, strict=True)}
    return [said[claim.owner] for claim in claims]


def renew_now(backend: AnyBackend, hold: Hold, observer: Observer | None = None) -> Flow[None]:
    """One renewal at the holder's request."""
    [reply] = yield from backend.renew([hold.granted()])
    if reply is None:
        raise OutcomeUnknown(f"nobody could tell whether {hold.claim.spec.name!r} was renewed; try again")
    settle(hold, reply, (yield NOW), observer)
