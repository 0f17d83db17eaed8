"""Granted by the end of another claim, without another look: what an heir may conclude from the news of its watches.

1. It has looked, and on the same connection it watches the claim before it and its own node. News come in the order of
   what happened. So if the other's end is told, and its own is not told before, its own node stood when the other
   ended: nobody has deleted it, nor had its session ended, for then nothing more would have come.
2. The other was granted when it ended: it was the first of the line when the heir looked; or it is a claim of our own
   that was granted; or it said *farewell*. Whoever merely gave up its place, or died, makes nobody its heir.
3. A farewell is a node that is made and deleted in the same step as the claim is deleted, so that nobody ever finds it;
   who watches for it is told. Only the release of a hold does that, if its token is that of its own node, and if
   somebody stood in line when it was granted. Who was alone then is the first for whoever comes after it.
4. By rule 6 of `line`, the heir is then granted, and its own czxid is above every token that was given before: for each
   seat and each token that is minted the parent is written to, and whoever is granted sees that. Had it happened since
   the heir's node was made, the other would have minted its token, and say no farewell. That it is the first is not
   enough, though, where the parent was ever written to: it may be about to mint.
5. Its hold counts from the last word of the leader to this session, not from the news. Where that word is not fresh, or
   the connection was lost in between, it looks as everybody else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..._core.flow import NOW, Flow
from ...model import Claim, Grant
from .line import Heir
from .ops import Delete, Op, Unwatch, Watches, portions
from .paths import farewell_of
from .places import GAP, Place
from .requests import Farewell

DOUBT_RATIO = 0.15
"""For which part of its ttl a claim goes without a word of the leader before it asks for one."""


class Handoff:
    def __init__(self, places: Mapping[str, Place]) -> None:
        self._places = places

    def watching(self, place: Place, nodes: Sequence[str], heir: Heir | None) -> list[Op]:
        """Note what a look said. Answers with what has to be asked for: to hear of these nodes, and to be an heir."""
        if place.claim.spec.lock_delay:  # who has a will writes it before it holds
            heir = None
        place.heir, place.ahead = heir, None
        ops: list[Op] = []
        wanted = [node for node in nodes if node not in place.watching]
        expects = ""
        if heir is not None:
            if place.node not in place.watching:
                wanted.append(place.node)
            ahead = self._places.get(heir.of.owner)
            if ahead is not None and ahead.node == heir.of.node:
                place.ahead = ahead
            elif not heir.first:
                expects = f"{place.parent}/{farewell_of(heir.of.node)}"
        if place.expects and place.expects != expects:  # it ended without
            ops.append(Unwatch(place.expects))
            place.expects = ""
        if wanted:
            made = (expects,) if expects and not place.expects else ()
            *most, last = portions(f"{place.parent}/{node}" for node in wanted)
            ops += [*map(Watches, most), Watches(last, made)]
            place.expects = expects
            place.watching = place.watching.union(wanted)
        return ops

    def inherit(self, claim: Claim, news: Sequence[str]) -> Flow[Grant | None]:
        """Granted, if these news say so; else it is time to look."""
        place = self._places.get(claim.owner)
        if place is None or (heir := place.heir) is None or place.granted or GAP in news or place.path in news:
            return None
        if place.expects and place.expects in news:
            place.expects = ""
        else:
            ahead = place.ahead
            known = heir.first or (ahead is not None and ahead.granted and not ahead.minted)
            if not known or f"{place.parent}/{heir.of.node}" not in news:
                return None
        link, ttl = place.link, claim.spec.ttl
        now: float = yield NOW
        assert link is not None
        since = link.proved
        if now - since > DOUBT_RATIO * ttl:
            return None
        place.until = now + ttl
        if place.gone:  # it had lapsed, and is being deleted: see `places`, rule 3
            return None
        place.granted, place.heirs = now, True
        place.ahead = None  # or each would remember the one before it, and so all of them
        link.keep(place)
        return Grant(place.token, since, min(ttl, link.lasts - link.unheard(since)))


def release_ops(place: Place, acl: bytes) -> list[Op]:
    """Let go of a hold, and say so to its heir if there may be one; the answer to the last of these tells."""
    ops: list[Op] = [Unwatch(place.expects)] if place.expects else []
    spec = place.claim.spec
    if not place.granted or not place.heirs or place.minted or spec.weight != spec.capacity:
        return [*ops, Delete(place.path)]
    return [*ops, Farewell(place, acl)]
