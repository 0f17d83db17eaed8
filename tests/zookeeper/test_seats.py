"""Out of turn, in every order of steps that a claim can take: never do more hold than fit.

Between a look and what follows from it others do what they like; a listing may be old, and tokens are read after it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from holdfast.backends.zookeeper.paths import prefix_of
from holdfast.backends.zookeeper.queue import NodeQueue, judge, keeps_slot, line_of
from holdfast.model import SHARED_CAPACITY, LockSpec

WALKS = 3000


@dataclass
class Claim:
    """`next` is the step that it takes next."""

    owner: str
    weight: int
    node: str
    next: str = "list"
    line: NodeQueue = field(default_factory=NodeQueue)
    slot: str = ""


@dataclass
class World:
    """The nodes, and who has written down a token."""

    capacity: int
    claims: dict[str, Claim] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    number: int = 0

    @property
    def nodes(self) -> list[str]:
        return [node for claim in self.claims.values() for node in (claim.node, claim.slot) if node]

    def enter(self, weight: int, fair: bool) -> None:
        self.number += 1
        owner = f"o{self.number}"
        spec = LockSpec("x", weight=weight, capacity=self.capacity, fair=fair, mode="permit")
        self.claims[owner] = Claim(owner, weight, f"{prefix_of(owner, 5, spec)}{self.number:010d}")

    def step(self, claim: Claim) -> None:
        """One step, as `acquire` and `unfair` take it."""
        mine = line_of([claim.node]).claims[0]
        match claim.next:
            case "list" | "list with seat":
                claim.line = line_of(self.nodes)
                claim.next = "decide" if claim.next == "list" else "keep"
            case "decide":
                verdict = judge(claim.line, mine, self.told - {claim.owner})
                claim.next = "held" if verdict.granted else "sit" if verdict.fits and not mine.fair else "list"
            case "sit":
                self.number += 1
                claim.slot = f"~seat.{claim.owner}.{claim.weight}.{self.capacity}.{self.number:010d}"
                claim.next = "list with seat"
            case "keep":
                kept = keeps_slot(claim.line, mine, self.told - {claim.owner})
                claim.next = "tell" if kept else "rise"
            case "rise":
                claim.slot, claim.next = "", "list"
            case "tell":
                self.told.add(claim.owner)
                claim.next = "held"
            case "held":
                del self.claims[claim.owner]
                self.told.discard(claim.owner)

    def holding(self) -> int:
        return sum(claim.weight for claim in self.claims.values() if claim.next in ("tell", "held"))


@pytest.mark.parametrize("capacity", [3, SHARED_CAPACITY])
def test_never_do_more_hold_than_fit(capacity: int) -> None:
    weights = [1, 2] if capacity < SHARED_CAPACITY else [1, 1, capacity]
    for seed in range(WALKS):
        chance = random.Random(seed)
        world = World(capacity)
        for _ in range(40):
            if len(world.claims) < 5 and chance.random() < 0.4:
                world.enter(chance.choice(weights), fair=chance.random() < 0.3)
            elif world.claims:
                world.step(chance.choice(list(world.claims.values())))
            assert world.holding() <= capacity, f"seed {seed}"


def test_a_seat_that_may_be_given_back_hides_no_holder() -> None:
    """A writer holds. One reader has sat down too late, and another one sees its slot."""
    world = World(SHARED_CAPACITY)
    for weight in (SHARED_CAPACITY, 1, 1):
        world.enter(weight, fair=weight != 1)
    writer, late, next_one = world.claims.values()
    late.next = "sit"  # it had looked before, when another reader held
    world.step(late)
    for _ in range(2):
        world.step(writer)
    assert writer.next == "list", "who looks later waits for the seat"
    writer.next = "held"  # but it had looked before
    for _ in range(6):
        world.step(next_one)
    assert next_one.next != "held"
    assert world.holding() == SHARED_CAPACITY
