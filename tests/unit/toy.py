"""The line in thirty lines: slow, without shortcuts, and easy to believe. One name; times in microseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Entry:
    owner: str
    weight: int
    fair: bool
    ttl: int
    patience: int
    delay: int
    until: int
    token: int = 0
    evicted: bool = False
    ghost: bool = False  # nobody's any more, but still in the way


class Toy:
    def __init__(self) -> None:
        self.capacity, self.mark, self.line = 0, 0, list[Entry]()

    def closed(self, entry: Entry, now: int) -> bool:
        return entry.token > 0 and now < entry.until + entry.delay

    def settle(self, now: int, clock: int) -> None:
        """Forget who is over (an evicted one is remembered for a ttl), and let in whoever may."""
        self.line = [
            e for e in self.line if now < e.until + ((max(e.delay, e.ttl) if e.evicted else e.delay) * (e.token > 0))
        ]
        for entry in self.line:
            used = sum(e.weight for e in self.line if self.closed(e, now))
            passed = [e for e in self.line[: self.line.index(entry)] if not e.token]
            if not entry.token and used + entry.weight <= self.capacity and not (passed and entry.fair):
                self.mark = entry.token = max(self.mark + 1, clock)

    def mine(self, owner: str) -> Entry | None:
        return next((e for e in self.line if e.owner == owner and not e.ghost), None)

    def take(self, asked: Entry, capacity: int, now: int, clock: int, queue: bool) -> int | str:
        """The token; 0 for not yet (or not at all, without `queue`); or that the capacity is another one."""
        self.line = [
            e for e in self.line if now < e.until + ((max(e.delay, e.ttl) if e.evicted else e.delay) * (e.token > 0))
        ]
        if not [e for e in self.line if not e.token or self.closed(e, now)]:
            self.capacity = capacity
        if self.capacity != capacity:
            return f"it is {self.capacity}"
        entry = self.mine(asked.owner)
        if entry is not None and entry.evicted:
            entry.ghost, entry = True, None
        if entry is None:
            entry = asked
            self.line.append(entry)
        held = entry.token
        entry.until = now + (entry.ttl if held else entry.patience)
        self.settle(now, clock)
        if entry.token and not held:
            entry.until = now + entry.ttl
        if not entry.token and not queue:
            self.line.remove(entry)
        return entry.token

    def renew(self, owner: str, token: int, now: int) -> bool:
        entry = self.mine(owner)
        alive = entry is not None and 0 < entry.token == token and now < entry.until and not entry.evicted
        if entry is not None and alive:
            entry.until = now + entry.ttl
        return alive

    def release(self, owner: str, now: int, clock: int, linger: int) -> bool:
        entry = self.mine(owner)
        alive = entry is not None and entry.token > 0 and now < entry.until and not entry.evicted
        if entry is not None and alive and linger:
            entry.ghost, entry.until, entry.delay = True, now + linger, 0
        elif entry is not None:
            self.line.remove(entry)
        self.settle(now, clock)
        return alive

    def evict(self, token: int, now: int, clock: int) -> bool:
        alive = [e for e in self.line if 0 < e.token == token and now < e.until and not e.evicted]
        for entry in alive:
            entry.evicted, entry.until = True, now
        self.settle(now, clock)
        return bool(alive)

    def holders(self, now: int) -> list[tuple[str, int]]:
        return [(e.owner, e.token) for e in self.line if self.closed(e, now)]

    def waiters(self, now: int) -> list[str]:
        return [e.owner for e in self.line if not e.token and now < e.until]


def entry(place: Any) -> Entry:
    """A place of the real line, as the toy has it."""
    return Entry(place.owner, place.weight, place.fair, place.ttl, place.patience, place.delay, place.expires)
