"""Granted by the end of another claim, without another look (`ordered_keys.handoff`): how ZooKeeper tells of it.

1. A waiter watches the claim before it and its own node on the connection on which it has looked. Had its own session
   ended meanwhile, nothing more would have come.
2. The other let go of a hold: it is a claim of our own that was granted, and has begun to leave; or it left a *handoff
   marker*: a node that is made and deleted in the same step as the claim is deleted, so that nobody ever finds it; who
   watches for it is told. Only the release of a hold does that, if its token is that of its own node, and if somebody
   stood in line when it was granted. That it was the first of the line when the waiter looked is not enough: it held,
   but how it ended is to be told, too (`end_notes`), and an eviction deletes the node as a release does.
3. By rule 4 of `queue`, the waiter is then granted, and its own czxid is above every token that was given before: for
   each slot and each token that is minted the parent is written to, and whoever is granted sees that. Had it happened
   since the waiter's node was made, the other would have minted its token, and leave no handoff marker.
4. Its hold counts from the last word of the leader to this session, not from the news. Where that word is not fresh, or
   the connection was lost in between, it looks as everybody else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..._core.flow import NOW, Flow
from ...model import Claim, Grant
from ..ordered_keys import handoff as ordered_keys
from ..ordered_keys.end_notes import is_robust
from .claim_state import GAP, ClaimState
from .ops import Delete, Op, Unwatch, Watches, portions
from .paths import handoff_marker_of
from .queue import PrecedingClaim
from .requests import HandoffRelease
from .tree import Tree

DOUBT_RATIO = 0.15
"""For which part of its ttl a claim goes without a word of the leader before it asks for one."""


class Handoff:
    def __init__(self, states: Mapping[str, ClaimState], tree: Tree) -> None:
        self._states, self._tree = states, tree

    def watching(self, state: ClaimState, nodes: Sequence[str], predecessor: PrecedingClaim | None) -> list[Op]:
        """Note what a look said. Answers with what has to be asked for: to hear of these nodes, and of a handoff."""
        if state.claim.spec.lock_delay or is_robust(state.claim.spec):  # who has a will, or a note, writes it first
            predecessor = None
        state.predecessor, state.ahead = predecessor, None
        ops: list[Op] = []
        wanted = [node for node in nodes if node not in state.watching]
        expects = ""
        if predecessor is not None:
            if state.node not in state.watching:
                wanted.append(state.node)
            ahead = self._states.get(predecessor.entry.owner)
            if ahead is not None and ahead.node == predecessor.entry.node:
                state.ahead = ahead
            else:
                expects = f"{state.parent}/{handoff_marker_of(predecessor.entry.node)}"
        if state.expects and state.expects != expects:  # it ended without
            ops.append(Unwatch(state.expects))
            state.expects = ""
        if wanted:
            made = (expects,) if expects and not state.expects else ()
            *most, last = portions(f"{state.parent}/{node}" for node in wanted)
            ops += [*map(Watches, most), Watches(last, made)]
            state.expects = expects
            state.watching = state.watching.union(wanted)
        return ops

    def inherit(self, claim: Claim, news: Sequence[str]) -> Flow[Grant | None]:
        """Granted, if these news say so; else it is time to look."""
        state, known = self._states.get(claim.owner), self._tree.parent_state(claim.spec.name).known
        if known is not None and state is not None:
            for path in news:
                known.remove(path.rpartition("/")[2], state.session)
        if state is not None and claim.spec.capacity == 1:
            state.ended |= {path.rpartition("/")[2] for path in news if path not in (GAP, state.path, state.expects)}
        if state is not None and (GAP in news or state.path in news):
            state.follows = None  # whatever was known of the line has to be looked at
        elif state is not None and (left := state.follows) is not None and not left.granted and left.path in news:
            state.follows, state.lags = left.follows, state.lags or left.lags  # it has given up its place
        if (
            state is None
            or (predecessor := state.predecessor) is None
            or state.granted
            or GAP in news
            or state.path in news
        ):
            return None
        before, holds = f"{state.parent}/{predecessor.entry.node}", False
        if state.expects and state.expects in news:
            before, holds, state.expects = state.expects, True, ""
        elif (ahead := state.ahead) is not None:
            holds = bool(ahead.granted) and not ahead.minted and ahead.leaving and not ahead.left
        handoff = ordered_keys.Handoff(state.path, before, holds)
        heard = [handoff.hear_end(path) for path in news]
        if handoff.gone or ordered_keys.HANDED not in heard:
            return None
        link, ttl = state.link, claim.spec.ttl
        now: float = yield NOW
        assert link is not None
        since = link.proved
        if now - since > DOUBT_RATIO * ttl:
            return None
        state.until = now + ttl
        if state.gone:  # it had lapsed, and is being deleted: see `states`, rule 3
            return None
        state.granted, state.may_hand_off = now, True
        if known is not None:
            known.remove_before(state.node, state.session)
        state.tell_behind()
        state.ahead = state.follows = None  # or each would remember the one before it, and so all of them
        link.keep(state)
        return Grant(state.token, since, min(ttl, link.lasts - link.unheard(since)))


def release_ops(state: ClaimState, acl: bytes) -> list[Op]:
    """Let go of a hold, and say so to its successor if there may be one; the answer to the last of these tells."""
    ops: list[Op] = [Unwatch(state.expects)] if state.expects else []
    spec = state.claim.spec
    behind = state.behind
    told = behind is not None and behind.ahead is state and behind.takes_all  # of ours, and nobody else can be the next
    silent = state.minted or state.left  # whoever is next has to look
    if not state.granted or not state.may_hand_off or silent or spec.weight != spec.capacity or told:
        return [*ops, Delete(state.path)]
    return [*ops, HandoffRelease(state, acl)]
