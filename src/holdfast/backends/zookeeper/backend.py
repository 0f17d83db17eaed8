"""The flows of ZooKeeper: a claim is a node, and the line is the listing of its parent.

1. Nobody writes a grant down: everybody reads off the same listing who is granted (see `line`, `taking`).
2. The token is the czxid of the claim's own node: the later grant of a name has the later node. Where somebody was
   overtaken (`fair=False`) that would be too low, and it gets another (see `turns`).
3. Renewing is one question to the leader per session (`Sync`), for all holds that it carries. Whether their nodes are
   still there is told by a watch on each (see `book`); of those that have none yet, the question is asked with it.
4. Whoever holds past its ttl, or has left without a word, is removed by its own wire (see `places`); if its process is
   gone, by the end of its session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._core.flow import NOW, Call, Flow, Wait
from ...errors import Misconfigured
from ...model import Claim, Extension, Grant, LockView, Promises, Queued, Refusal
from .acquire import AcquireFlows
from .admin import AdminFlows
from .ops import NO_NODE, Exists, Failure, Op, Sync
from .places import Describing, Link, Place
from .rates import Rates
from .release import ReleaseFlows
from .requests import Batch
from .tombstones import Tombstones
from .tree import Tree

PROMISES = frozenset({"fencing", "linearizable", "durable", "shared", "counting"})
OPEN_TO_ALL = (
    "the URL names no user, so every node is open to the world: whoever reaches the servers can delete a claim, or "
    "forge one; write zookeeper://user:password@…"
)


class ZooKeeperBackend:
    """Locks that rest on a ZooKeeper ensemble."""

    scheme = "zookeeper"

    def __init__(
        self,
        tree: Tree,
        cluster: str,
        least_ttl: float,
        request_timeout: float,
        host: str,
        pid: Callable[[], int],
        guarded: bool = True,
    ) -> None:
        """`guarded`: the nodes belong to a user of their own."""
        self.cluster = cluster
        self.promises = Promises(PROMISES, {} if guarded else {"access": OPEN_TO_ALL})
        self.least_ttl = least_ttl
        self._tree = tree
        self._timeout = request_timeout
        self._places: dict[str, Place] = {}
        traces = Tombstones(tree, request_timeout)
        leaving = ReleaseFlows(self._places, traces, request_timeout)
        taking = AcquireFlows(tree, self._places, leaving, traces, Describing(host, pid), request_timeout)
        looking = AdminFlows(tree, request_timeout)
        self.take, self.take_all = taking.take, taking.take_all
        self._inherit = taking.inherit
        self.release = leaving.release
        self.allow = Rates(tree, request_timeout).allow
        self.evict, self.ask = looking.evict, looking.ask
        self._survey = looking.survey

    def turn(self, claim: Claim, queued: Queued, timeout: float) -> Flow[Grant | None]:
        """What comes is who has left, or that we are connected again: a grant at once, or time to look."""
        news = yield Wait(claim.owner, timeout)
        return (yield from self._inherit(claim, news)) if news else None

    def renew(self, claims: Sequence[Claim], within: float | None = None) -> Flow[list[Extension | Refusal | None]]:
        sent: float = yield NOW
        timeout = min(self._timeout, min(claim.spec.ttl for claim in claims) / 3)
        timeout = timeout if within is None else min(timeout, within)
        places = [self._places.get(claim.owner) for claim in claims]
        groups: dict[int, tuple[Link, list[Place]]] = {}
        for place in places:
            if place is not None and place.link is not None:
                groups.setdefault(id(place.link), (place.link, []))[1].append(place)
        heard = {}
        for which, (link, group) in groups.items():
            heard[which] = yield from self._ask_leader(link, group, timeout)
        return [self._renewed(claim, place, sent, heard) for claim, place in zip(claims, places, strict=True)]

    def _ask_leader(self, link: Link, places: Sequence[Place], timeout: float) -> Flow[bool]:
        """Whether this session lives; and of places that are not watched yet, whether they are there."""
        unwatched = [place for place in places if not place.confirmed and not place.gone]
        ops: list[Op] = [Sync(self._tree.root), *(Exists(place.path) for place in unwatched)]
        answers = yield Call(Batch(ops, link=link), timeout)
        if answers is None:
            for place in places:
                place.gone = place.gone or "session"
            return False
        for place, stat in zip(unwatched, answers[1:], strict=True):
            if isinstance(stat, Failure) and stat.code == NO_NODE:
                place.gone = place.gone or "evicted"
        return answers[0] is True

    def _renewed(
        self, claim: Claim, place: Place | None, sent: float, heard: dict[int, bool]
    ) -> Extension | Refusal | None:
        if place is None or place.token != claim.token or place.link is None:
            return Refusal("refused")
        said = heard[id(place.link)]
        if said and not place.gone:
            if sent >= place.until:
                return Refusal("expired")
            place.until = sent + claim.spec.ttl
        if place.gone:
            return Refusal(place.gone)
        return Extension(sent, min(claim.spec.ttl, place.link.lasts), place.asked) if said else None

    def survey(self, prefix: str, exact: bool = False, contended: bool = False) -> Flow[list[LockView]]:
        return self._survey(prefix, exact, contended)

    def guard(self, claim: Claim) -> Any:
        """A check for a `multi` of the user's own, as (path, version): the node of this very grant is there."""
        place = self._places.get(claim.owner)
        if place is None or not place.node:
            raise Misconfigured(f"{claim.spec.name!r} is not held by {claim.owner}, so there is nothing to guard with")
        return place.path, -1
