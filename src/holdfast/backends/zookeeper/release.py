"""Out of the line: release, and finding a node whose making was not answered.

1. A lost reply is made good by looking: the owner and the session stand in the node's name. A node of ours that belongs
   to another session is about to vanish: it is deleted, never adopted; one that has lapsed is being deleted already.
2. If no server can be asked, the tracker of the session gets the place, and with it its node, known or not: the flow
   gives up with its claim's ttl, and the session would keep the node.
3. A release is one deletion; with a farewell (see `handoff`), a will, a seat or a ghost, one `Multi`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.flow import NOW, Call, Flow
from ...errors import BackendUnavailable
from ...model import Claim
from .handoff import release_ops
from .line import picture_of
from .ops import NO_NODE, Delete, Exists, Failure, List
from .places import Place
from .requests import Batch
from .tombstones import Tombstones


class ReleaseFlows:
    def __init__(self, places: dict[str, Place], traces: Tombstones, timeout: float) -> None:
        self._places = places
        self._traces = traces
        self._timeout = timeout

    def release(self, claim: Claim, linger: float = 0.0) -> Flow[bool]:
        """True if it was held until now."""
        place = self._places.get(claim.owner)
        if place is None:
            return False
        place.ahead = None
        try:
            return (yield from self._release(place, linger))
        except BackendUnavailable:
            if place.link is not None and not place.kept:
                place.link.keep(place)  # rule 2
            raise

    def _release(self, place: Place, linger: float) -> Flow[bool]:
        claim = place.claim
        if not place.node and place.tried and place.link is not None and not place.gone:
            listed = yield Call(Batch((List(place.parent),), place), self._timeout)
            if listed and listed[0]:
                yield from self.find(place, listed[0][0], self._timeout)
        if place.gone or not place.node:
            self._places.pop(claim.owner, None)
            return False
        now: float = yield NOW
        held = bool(place.granted) and now < place.until
        if not (place.will or place.seat or linger):
            answers = yield Call(Batch(release_ops(place, self._traces.tree.acl), place, leaving=True), self._timeout)
            if answers and isinstance(answers[-1], Failure) and answers[-1].code != NO_NODE:  # no room for a farewell
                answers = yield Call(Batch((Delete(place.path),), place), self._timeout)
            done = bool(answers and answers[-1])
            if done and place.alone:
                self._traces.tree.ground(claim.spec.name).left(place)
        else:
            done = yield from self._traces.delete_claim(place, linger if held else 0.0)
        place.gone = place.gone or "released"
        self._places.pop(claim.owner, None)
        return held and done

    def find(self, place: Place, children: Sequence[str], timeout: float) -> Flow[None]:
        """Note the node of a place if it is there."""
        for entry in picture_of(children).claims:
            if entry.owner != place.claim.owner or entry.node in place.former:
                continue
            path = f"{place.parent}/{entry.node}"
            if entry.session != place.session:
                yield Call(Batch((Delete(path),), place), timeout)
                continue
            place.node = entry.node
            yield from self.read([place], timeout)

    def read(self, places: Sequence[Place], timeout: float) -> Flow[None]:
        """Note token and time of nodes of which only the name is known."""
        answers = yield Call(Batch(tuple(Exists(place.path) for place in places), places[0]), timeout)
        now: float = yield NOW
        for place, stat in zip(places, answers or [None] * len(places), strict=True):
            if stat and place.link is not None:
                place.token, place.born, place.seen = stat.czxid, stat.ctime, now
                place.link.keep(place)
            else:
                place.gone = "evicted" if answers else "session"
