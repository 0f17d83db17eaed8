"""What the server keeps for one name: a queue of claims. No I/O and no clock; each call comes with its time.

1. A claim is granted when it and all claims before it fit into the capacity. Nobody overtakes, except for a claim that
   is not `fair` and fits.
2. Only requests of its own owner move the expiry of a claim. A promotion does not: the owner knows when it sent its
   last request, and so for how long the grant is good, without trusting a message or a clock.
3. A token is `max(last + 1, calendar in microseconds)`. So it grows even if the server has forgotten the last one.
4. A hold that ends uncleanly (expired, evicted) keeps its weight for `delay` more. One that is released may linger.
5. A hold that was evicted is remembered for a ttl, so that its owner's next renewal learns why it was refused.

Times are seconds; `now` is a monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(eq=False)
class Entry:
    """One claim. `token` is 0 while it waits."""

    owner: str
    weight: int
    fair: bool
    ttl: float
    patience: float
    delay: float
    actor: str
    mode: str
    host: str
    pid: int
    since: float
    expires: float = 0.0
    token: int = 0
    evicted: bool = False
    departed: bool = False
    """Its owner has let go of it, or begun anew; what is left of it only keeps the name closed."""

    def holds(self, now: float) -> bool:
        return bool(self.token) and not self.evicted and now < self.expires

    def counts(self, now: float) -> bool:
        """It waits, or takes up its weight (rule 4)."""
        return now < self.expires + (self.delay if self.token else 0.0)

    def remembered(self, now: float) -> bool:
        return self.counts(now) or (self.evicted and now < self.expires + self.ttl)


@dataclass
class Queue:
    """The claims of one name in their order, and its last token."""

    capacity: int = 0
    mark: int = 0
    entries: list[Entry] = field(default_factory=list)

    def find(self, owner: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.owner == owner and not entry.departed), None)

    def sweep(self, now: float) -> None:
        self.entries = [entry for entry in self.entries if entry.remembered(now)]

    def in_use(self, now: float) -> bool:
        return any(entry.counts(now) for entry in self.entries)

    def enter(self, asked: Entry, capacity: int, now: float, calendar_us: int) -> tuple[Entry, list[Entry]]:
        """Enter, or find one's own claim again: a retried request changes nothing. Also returns who was promoted."""
        if not self.in_use(now):
            self.capacity = capacity
        mine = self.find(asked.owner)
        if mine is not None and mine.evicted:  # that hold is over; its owner starts anew, at the end
            mine.departed = True
            mine = None
        if mine is None:
            mine = asked
            self.entries.append(mine)
        mine.expires = now + (mine.ttl if mine.token else mine.patience)
        promoted = self.promote(now, calendar_us)
        if mine in promoted:
            promoted.remove(mine)
            mine.expires = now + mine.ttl  # this is a request of its owner: rule 2
        return mine, promoted

    def promote(self, now: float, calendar_us: int) -> list[Entry]:
        """Grant, in order, whatever fits (rules 1 and 3)."""
        free = self.capacity - sum(entry.weight for entry in self.entries if entry.token and entry.counts(now))
        promoted: list[Entry] = []
        blocked = False
        for entry in self.entries:
            if entry.token or not entry.counts(now):
                continue
            if entry.weight <= free and not (blocked and entry.fair):
                free -= entry.weight
                self.mark = max(self.mark + 1, calendar_us)
                entry.token, entry.since = self.mark, now
                promoted.append(entry)
            else:
                blocked = True
        return promoted

    def renew(self, owner: str, token: int, now: float) -> str:
        """Extend the hold with this token: "held", or why not. What has ended does not come back."""
        entry = self.find(owner)
        if entry is None or not entry.token or entry.token != token:
            return "refused"
        if not entry.holds(now):
            return "evicted" if entry.evicted else "expired"
        entry.expires = now + entry.ttl
        return "held"

    def leave(self, owner: str, now: float, linger: float = 0.0) -> bool:
        """Stop waiting, or release. Returns whether it was held until now."""
        entry = self.find(owner)
        if entry is None:
            return False
        held = entry.holds(now)
        if held and linger > 0:
            entry.departed, entry.expires, entry.delay = True, now + linger, 0.0
        else:
            self.entries.remove(entry)
        return held

    def evict(self, token: int, now: float) -> bool:
        for entry in self.entries:
            if entry.token == token and entry.holds(now):
                entry.evicted, entry.expires = True, now
                return True
        return False

    def ahead(self, mine: Entry, now: float) -> int:
        return sum(entry.counts(now) for entry in self.entries[: self.entries.index(mine)])

    def look_again(self, mine: Entry, now: float) -> float:
        """In how many seconds a waiter should ask again without a push: when the first hold may have ended."""
        before = self.entries[: self.entries.index(mine)]
        ends = [entry.expires + entry.delay - now for entry in self.entries if entry.token and entry.counts(now)]
        if any(not entry.token for entry in before):
            ends = []  # another waiter is first, and sees to that
        return max(0.001, min([mine.patience / 3, *ends]))
