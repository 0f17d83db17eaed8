"""The keeper: one flow that keeps all leases of a coordinator.

1. Renewals leave in batches, one at a time: while one is under way, what falls due meanwhile joins the next.
2. The deadline is apart from renewal: a renewal that hangs does not keep a lease from being declared lost in time.
   The keeper sends one itself only while the engine answers at once and nobody would suffer if it did not
   (`Calendar.can_spare`); a deadline is waited for if there is time for that. Else an errand waits for the reply, and
   the keeper goes on.
3. One failed renewal never ends renewal: the hold is in jeopardy and is tried again until its deadline.
4. A hold that was released or lost is never renewed again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ..errors import OutcomeUnknown
from ..model import Extension, Refusal
from ..ports import Backend
from .calendar import Calendar
from .flow import NOW, RANDOM, Bell, Doze, Flow, Spawn
from .lease import NEVER, Hold

AT_ONCE = 0.1
"""How long the keeper itself waits for a reply, in seconds; an engine that needs longer is waited for by an errand.
Never less: a request that is given up costs most wires their connection. If something else is due sooner, the keeper
sees to that first, for so long at most, and then renews."""

SHORT_OF_THREADS = 0.02
"""When to try again if a renewal could not be started."""

BATCH = 512
"""Claims in one renewal request: few requests, none so long that it keeps others from the engine."""


class Keeper:
    """Keeps what was put into it. `keep()` is the flow that a driver runs for as long as the coordinator lives.

    `launch` makes the driver run it; it is called before the first hold is put in, and may be called again.
    """

    def __init__(self, backend: Backend, calendar: Calendar, bell: Bell, launch: Callable[[Keeper], None]) -> None:
        self._backend = backend
        self._calendar = calendar
        self.enter = calendar.put
        """For who has no time for `put`: who is answered True has to `wake` the keeper."""
        self.discard = calendar.discard
        self._bell = bell
        self._backlog: deque[Hold] = deque()
        self._under_way = False
        self._swift = True
        """The engine answered at once, last time."""
        self._put_off = 0.0
        """Until when the backlog waits for what is due a moment later; 0 if it has not been put off."""
        self._launch = launch
        self.launched = False
        self.closed = False

    def put(self, hold: Hold) -> None:
        if self._calendar.put(hold):
            self.wake()

    def wake(self) -> None:
        """Something is due earlier than what it sleeps for."""
        if not self.launched:
            self._launch(self)
        self._bell.ring()

    def close(self) -> None:
        self.closed = True
        self._bell.ring()

    def keep(self) -> Flow[None]:
        while not self.closed:
            now: float = yield NOW
            while due := self._calendar.pop_due(now):
                for hold in due:
                    self._attend(hold, now)
            if self._backlog and not self._under_way:
                if self._swift and self._calendar.can_spare(now, AT_ONCE):
                    yield from self._renew_at_once()
                    continue
                if self._can_wait(now):
                    self._put_off = self._put_off or now + AT_ONCE
                else:
                    self._put_off = 0.0
                    self._under_way = True
                    if (yield Spawn(self._renew_backlog())) is False:
                        self._under_way = False
                        yield Doze(self._bell, SHORT_OF_THREADS)
                        continue
            waking_at = self._calendar.waking_at
            yield Doze(self._bell, None if waking_at == NEVER else max(0.0, waking_at - (yield NOW)))

    def _can_wait(self, now: float) -> bool:
        """Whether all that is to be renewed has time for a moment, and has not waited for one."""
        if not self._swift or (self._put_off and now >= self._put_off):
            return False
        return all(hold.deadline > now + 10 * AT_ONCE for hold in self._backlog)

    def _attend(self, hold: Hold, now: float) -> None:
        if not hold.alive:
            return
        if (reason := hold.over(now)) is not None:
            hold.lose(reason)
            return
        # Slots come early: a renewal that is nearly due joins this batch, a deadline waits for a finer slot.
        if now >= hold.renew_at - (hold.deadline - hold.renew_at) / 8:
            hold.renew_at = NEVER
            self._backlog.append(hold)
        self._calendar.put(hold)

    def _next_batch(self) -> list[Hold]:
        batch = [self._backlog.popleft() for _ in range(min(BATCH, len(self._backlog)))]
        return [hold for hold in batch if hold.alive]

    def _renew_at_once(self) -> Flow[None]:
        """One batch, by the keeper itself; if no reply comes at once, it is left to an errand."""
        self._put_off = 0.0
        holds = self._next_batch()
        try:
            yield from self._renew(holds, AT_ONCE)
        except Exception:  # noqa: BLE001  the errand will meet it again, and see to it
            self._swift = False
            self._backlog.extend(holds)

    def _renew_backlog(self) -> Flow[None]:
        """All batches, as an errand."""
        try:
            while self._backlog:
                holds = self._next_batch()
                sent: float = yield NOW
                try:
                    yield from self._renew(holds, None)
                except Exception:  # noqa: BLE001  whatever it was, renewal goes on until the deadline (rule 3)
                    now: float = yield NOW
                    chance: float = yield RANDOM
                    for hold in holds:
                        hold.falter(now, chance)
                        self._return(hold)
                else:
                    self._swift = (yield NOW) < sent + AT_ONCE
        finally:
            self._under_way = False
            if self._backlog:  # it fell due between the last look and this line
                self._bell.ring()

    def _renew(self, holds: list[Hold], within: float | None) -> Flow[None]:
        if holds:
            replies = yield from self._backend.renew([hold.granted() for hold in holds], within)
            now: float = yield NOW
            for hold, reply in zip(holds, replies, strict=True):
                if reply is None:
                    hold.falter(now, (yield RANDOM))
                else:
                    settle(hold, reply, now)
                self._return(hold)

    def _return(self, hold: Hold) -> None:
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
        raise OutcomeUnknown(f"nobody could tell whether {hold.claim.ask.name!r} was renewed; try again")
    settle(hold, reply, (yield NOW))
