"""Who holds, as everybody reads it off the same keys: pure.

1. Claims stand in the order in which the engine created their keys. Nobody comes in before anybody, so who holds is a
   function of the keys: a claim holds if it and everything before it fit into the capacity. Nothing has to be written
   for that: the end of a claim *is* the grant of the next one. What stands before a claim only ever becomes less, so a
   claim that holds goes on holding.
2. What was granted out of turn (`fair=False`) says so at the engine, and counts before all others.
3. A tombstone takes up its weight, once the claim that it belongs to is gone.
4. The capacity of a queue is that of its oldest claim, or else of its tombstones. A claim with another capacity does
   not count, and is about to leave. A claim of another library tells no capacity (0): it takes all of what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ...errors import Misconfigured
from ...model import Claim


class Standing(Protocol):
    """A claim or a tombstone, as its key tells it."""

    @property
    def owner(self) -> str: ...

    @property
    def weight(self) -> int: ...

    @property
    def capacity(self) -> int: ...


C = TypeVar("C", bound=Standing)
T = TypeVar("T", bound=Standing)


@dataclass(slots=True)
class Queue(Generic[C, T]):
    """One name: who holds, who waits, and what else takes up room."""

    capacity: int
    holding: list[C] = field(default_factory=list)
    waiting: list[C] = field(default_factory=list)
    tombstones: list[T] = field(default_factory=list)
    notes: list[T] = field(default_factory=list)
    """End notes (`end_notes`), where somebody looks at them."""

    @property
    def used(self) -> int:
        return total(self.holding, self.capacity) + total(self.tombstones)


def judge(claims: Sequence[C], tombstones: Iterable[T], out_of_turn: Callable[[C], bool]) -> Queue[C, T]:
    """Who holds. Claims in order, the tombstones that count, and whether a claim was granted out of turn."""
    counting = list(tombstones)
    queue = Queue[C, T](capacity_of(claims, counting), tombstones=counting)
    standing = [claim for claim in claims if claim.capacity in (queue.capacity, 0)]
    early = [claim for claim in standing if out_of_turn(claim)]
    free = queue.capacity - total(counting) - total(early, queue.capacity)
    for claim in standing:
        if not out_of_turn(claim):
            free -= claim.weight or queue.capacity
            if free < 0:  # and so for all behind it
                queue.waiting.append(claim)
                continue
        queue.holding.append(claim)
    return queue


def orphans(tombstones: Iterable[T], claims: Iterable[Standing]) -> list[T]:
    """Those that count (rule 3)."""
    owners = {claim.owner for claim in claims}
    return [tombstone for tombstone in tombstones if tombstone.owner not in owners]


def capacity_of(claims: Iterable[Standing], tombstones: Iterable[Standing]) -> int:
    """That of the queue (rule 4); 0 if nothing of ours stands in it."""
    first = next((claim.capacity for claim in claims if claim.capacity), 0)
    return first or next((tombstone.capacity for tombstone in tombstones), 0)


def fitting(claims: Iterable[C], free: int, capacity: int) -> list[C]:
    """Those from the head of the queue that fit together."""
    found = []
    for claim in claims:
        free -= claim.weight or capacity
        if free < 0:
            break
        found.append(claim)
    return found


def total(standing: Iterable[Standing], capacity: int = 0) -> int:
    return sum(one.weight or capacity for one in standing)


def mismatch(claim: Claim, capacity: int) -> Misconfigured:
    """The error of a claim whose name is in use with another capacity."""
    spec = claim.spec
    return Misconfigured(
        f"{spec.name!r} is in use with capacity {capacity}, and was asked for with {spec.capacity}; "
        "use one kind of lock and one number of permits for a name"
    )
