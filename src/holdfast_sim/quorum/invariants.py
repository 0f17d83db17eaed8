"""What must hold on a quorum (the names are those of `proofs/redlock.pml`).

U  no two grants of a name have the same token.
R  a grant whose winning round was begun after another grant was complete has the larger token.
F  no majority of nodes ever holds for a token that is smaller than one already granted.
X  at most one client believes that it holds a name. Clocks here keep to their allowance, so this is asked for always.
-  nothing is left behind: an owner that has ended, and of whose messages none was lost, duplicated, or reached a
   node that restarted, has a hold at no node; any other owner for its ttl at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast._core.lease import Hold, drift
from holdfast.backends.redlock.fanout import Fanout

from ..process import Process
from ..violation import Violation
from .node import NOBODY, owner_of

if TYPE_CHECKING:
    from .world import QuorumWorld


class QuorumInvariants:
    """All invariants of one seed of the quorum."""

    def __init__(self, world: QuorumWorld) -> None:
        self._world = world
        self._grants: dict[str, list[tuple[float, int]]] = {}
        self._top: dict[str, int] = {}
        self._held: list[tuple[Process, Hold]] = []
        self._disturbed: set[str] = set()
        self._ended: set[str] = set()

    def crashed(self, process: Process) -> None:
        self._ended.discard(process.name)

    def asked(self, process: Process, request: Fanout) -> None:
        """No invariant needs the sender of a request so far."""

    def disturbed(self, request: Fanout) -> None:
        if request.verb == "extend":
            self._disturbed.update(owner_of(text) for text in request.args[2::2])
        elif request.verb in ("take", "release"):
            self._disturbed.add(owner_of(request.args[2] if request.verb == "take" else request.args[0]))

    def brought_back(self, holds: Iterable[str]) -> None:
        """A node restarted from a snapshot in which these were held."""
        self._disturbed.update(owner_of(hold) for hold in holds)

    def acquired(self, process: Process, hold: Hold) -> None:
        world, name, ttl = self._world, hold.claim.spec.name, hold.claim.spec.ttl
        world.count("acquired")
        began = process.true_time(hold.valid_until + drift(ttl) - ttl)
        grants = self._grants.setdefault(name, [])
        for at, token in grants:
            if token == hold.token:
                raise Violation("U", f"{name!r}: token {token} was granted twice, now to {hold.claim.owner}")
            if at < began and token > hold.token:
                raise Violation("R", f"{name!r}: {hold.token} was asked for after {token} had been granted")
        grants.append((world.timeline.now, hold.token))
        self._top[name] = max(self._top.get(name, 0), hold.token)
        for other, held in self._held:
            if held.claim.spec.name == name and held.alive and not other.crashed and other.clock() < held.deadline:
                raise Violation(
                    "X", f"{name!r}: {hold.claim.owner} holds it, while {held.claim.owner} does so for "
                    f"{held.deadline - other.clock():.3f} s more"
                )  # fmt: skip
        self._held = [(p, h) for p, h in self._held if h.alive and not p.crashed]
        self._held.append((process, hold))

    def looked_at(self, key: str) -> None:
        """A node has changed what it keeps of a name."""
        name = key.rpartition("/")[2]
        votes: dict[int, int] = {}
        for node in self._world.nodes:
            hold = None if node.forgetful else node.held(key)  # what came from an old snapshot is nobody's any more
            if hold is not None and hold[:20] != NOBODY:
                votes[int(hold[:20])] = votes.get(int(hold[:20]), 0) + 1
        for ballot, count in votes.items():
            if count >= self._world.majority and ballot < self._top.get(name, 0):
                raise Violation("F", f"{name!r}: a majority holds for {ballot}, after {self._top[name]} was granted")

    def ended(self, owner: str) -> None:
        self._ended.add(owner)

    def at_rest(self) -> None:
        """All scripts have ended and all messages have arrived; no hold has expired yet."""
        for node in self._world.nodes:
            for key in list(node.model.texts):
                hold = node.held(key) if "/hold/" in key else None
                if hold is None or hold[:20] == NOBODY:
                    continue
                if owner_of(hold) in self._ended and owner_of(hold) not in self._disturbed:
                    raise Violation("nothing is left behind", f"{owner_of(hold)} has ended, and stands at {node.index}")

    def at_the_end(self) -> None:
        """The longest ttl has passed since the last script ended."""
        for node in self._world.nodes:
            for key in list(node.model.texts):
                if "/hold/" in key and (hold := node.held(key)) is not None:
                    raise Violation("a hold is bounded by its ttl", f"{owner_of(hold)} stands at {node.index}")
