"""The flows of ZooKeeper: a claim is a node, and the line is the listing of its parent.

1. Nobody writes a grant down: everybody reads off the same listing who is granted (see `ordered_keys.queue`).
2. The token is the czxid of the claim's own node: the later grant of a name has the later node. Where somebody was
   overtaken (`fair=False`) that would be too low, and it gets another (see `unfair`).
3. Renewing is one question to the leader per session (`Sync`), for all holds that it carries. Whether their nodes are
   still there is told by a watch on each (see `tracker`); of those that have none yet, the question is asked with it.
4. Whoever holds past its ttl, or has left without a word, is removed by its own wire (see `states`); if its process is
   gone, by the end of its session.
5. Sessions are asked one after the other, those with the shortest ttl first: the server of one may hang, and none of
   those behind it loses more than a third of that ttl by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..._core.flow import NOW, Call, Flow, Wait
from ...errors import BackendUnavailable, Misconfigured
from ...model import Claim, Extension, Grant, Promises, Queued, Refusal
from ..ordered_keys.admin import AdminFlows
from ..ordered_keys.rates import Rates
from .acquire import AcquireFlows
from .admin import QueueNodes
from .claim_state import ClaimState, DescriptionWriter, SessionLink
from .end_notes import recovered
from .ops import NO_NODE, Exists, Failure, Op, Sync
from .rates import CounterNodes
from .release import ReleaseFlows
from .requests import Batch
from .tombstones import Tombstones
from .tree import Tree

PROMISES = frozenset({"fencing", "linearizable", "durable", "shared", "counting"})
NO_RECORDS = (
    "ZooKeeper keeps no time for what outlives a session, and its tree is not made for a node per key; use etcd:// or "
    "a database for records, and fence what they guard with a token of ZooKeeper's"
)
PARTLY_REMEMBERED = (
    "of a mutex that was evicted, outlived its ttl, or was taken with recover=; of other holds whose session ended "
    "nothing is remembered"
)
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
        self.promises = Promises(
            PROMISES,
            {"records": NO_RECORDS, "predecessor": PARTLY_REMEMBERED} | ({} if guarded else {"access": OPEN_TO_ALL}),
        )
        self.least_ttl = least_ttl
        self._tree = tree
        self._timeout = request_timeout
        self._states: dict[str, ClaimState] = {}
        tombstones = Tombstones(tree, request_timeout)
        releases = ReleaseFlows(self._states, tombstones, request_timeout)
        acquire = AcquireFlows(tree, self._states, releases, tombstones, DescriptionWriter(host, pid), request_timeout)
        admin = AdminFlows(QueueNodes(tree, request_timeout))
        self.take, self.take_all, self._inherit = acquire.take, acquire.take_all, acquire.inherit
        self.release = releases.release
        self.allow = Rates(CounterNodes(tree, request_timeout)).allow
        self.survey, self.evict, self.ask = admin.survey, admin.evict, admin.ask

    def turn(self, claim: Claim, queued: Queued, timeout: float) -> Flow[Grant | None]:
        """What comes is who has left, or that we are connected again: a grant at once, or time to look."""
        news = yield Wait(claim.owner, timeout)
        return (yield from self._inherit(claim, news)) if news else None

    def renew(self, claims: Sequence[Claim], within: float | None = None) -> Flow[list[Extension | Refusal | None]]:
        sent: float = yield NOW
        states = [self._states.get(claim.owner) for claim in claims]
        groups: dict[int, tuple[SessionLink, list[ClaimState]]] = {}
        for state in states:
            if state is not None and state.link is not None:
                groups.setdefault(id(state.link), (state.link, []))[1].append(state)
        heard: dict[int, bool] = {}
        failure: BackendUnavailable | None = None
        for which, (link, group) in sorted(groups.items(), key=lambda each: each[1][0].lasts):  # rule 5
            timeout = min(self._timeout, min(state.claim.spec.ttl for state in group) / 3)
            timeout = timeout if within is None else min(timeout, within)
            try:
                heard[which] = yield from self._ask_leader(link, group, timeout)
            except BackendUnavailable as error:
                heard[which], failure = False, error
        replies = [self._renewed(claim, state, sent, heard) for claim, state in zip(claims, states, strict=True)]
        if failure is not None and all(reply is None for reply in replies):
            raise failure
        return replies

    def _ask_leader(self, link: SessionLink, states: Sequence[ClaimState], timeout: float) -> Flow[bool]:
        """Whether this session lives; and of places that are not watched yet, whether they are there."""
        unwatched = [state for state in states if not state.confirmed and not state.gone]
        ops: list[Op] = [Sync(self._tree.root), *(Exists(state.path) for state in unwatched)]
        answers = yield Call(Batch(ops, link=link), timeout)
        if answers is None:
            for state in states:
                state.gone = state.gone or "session"
            return False
        for state, stat in zip(unwatched, answers[1:], strict=True):
            if isinstance(stat, Failure) and stat.code == NO_NODE:
                state.gone = state.gone or "evicted"
        return answers[0] is True

    def _renewed(
        self, claim: Claim, state: ClaimState | None, sent: float, heard: dict[int, bool]
    ) -> Extension | Refusal | None:
        if state is None or state.token != claim.token or state.link is None:
            return Refusal("refused")
        said = heard[id(state.link)]
        if said and not state.gone:
            if sent >= state.until:
                return Refusal("expired")
            state.until = sent + claim.spec.ttl
        if state.gone:
            return Refusal(state.gone)
        return Extension(sent, min(claim.spec.ttl, state.link.lasts), state.asked) if said else None

    def recovered(self, claim: Claim) -> Flow[bool]:
        return recovered(self._states.get(claim.owner), claim, self._timeout)

    def guard(self, claim: Claim) -> tuple[str, int]:
        """A check for a `multi` of the user's own, as (path, version): the node of this very grant is there."""
        state = self._states.get(claim.owner)
        if state is None or not state.node:
            raise Misconfigured(f"{claim.spec.name!r} is not held by {claim.owner}, so there is nothing to guard with")
        return state.path, -1
