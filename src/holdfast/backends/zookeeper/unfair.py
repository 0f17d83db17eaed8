"""Out of turn: seats, and tokens for those who were overtaken. See `line`, rule 2.

Taking a seat writes the parent in the same step, so its mzxid is the zxid of the last seat that was taken. A claim
whose own czxid is below has been overtaken, perhaps: it writes the parent once more, and the zxid of that is its token.
Tokens that are not the czxid of a claim stand in its node's data, before it holds.
"""

from __future__ import annotations

from ..._core.flow import NOW, Call, Flow
from ...errors import BackendUnavailable
from .line import Picture, keeps_seat, picture_of
from .ops import EPHEMERAL, SEQUENTIAL, Check, Create, Delete, Exists, List, Multi, Read, Write
from .paths import Entry
from .places import Place, read_about
from .requests import Batch
from .tree import Tree


class Turns:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def mint(self, place: Place, timeout: float) -> Flow[None]:
        """A token above all that were given out of turn."""
        answers = yield Call(Batch((Write(place.parent, b""),), place), timeout)
        if not answers or not answers[0]:
            raise BackendUnavailable(f"no token for {place.claim.spec.name!r}: its parent node is gone; try again")
        yield from self._proclaim(place, answers[0].mzxid, timeout)

    def _proclaim(self, place: Place, token: int, timeout: float) -> Flow[None]:
        place.token, place.minted = token, True
        data = place.confirmation((yield NOW))
        yield Call(Batch((Write(place.path, data),), place), timeout)

    def settled(self, place: Place, picture: Picture, timeout: float) -> Flow[set[str]]:
        """Whose seats are known to be kept: a token is written down before anybody holds out of turn."""
        seated = [entry for entry in picture.claims if entry.owner in picture.seats and entry.node != place.node]
        if not seated:
            return set()
        answers = yield Call(Batch([Read(f"{place.parent}/{entry.node}") for entry in seated], place), timeout)
        read = zip(seated, answers or (), strict=False)
        return {entry.owner for entry, found in read if found and "token" in read_about(found[0])}

    def claim_slot(self, place: Place, picture: Picture, mine: Entry, timeout: float) -> Flow[bool]:
        """Out of turn, if it fits and still does once everybody can see it."""
        if mine.owner not in picture.seats:
            seat = Create(place.seat_prefix, b"", self._tree.acl, EPHEMERAL | SEQUENTIAL)
            yield Call(Batch((Multi((seat, Check(place.path), Write(place.parent, b""))),), place), timeout)
        answers = yield Call(Batch((List(place.parent),), place), timeout)
        if not answers or not answers[0]:
            return False
        picture = picture_of(answers[0][0])
        if (own := picture.seats.get(mine.owner)) is None:
            return False
        place.seat = f"{place.parent}/{own.node}"
        settled = yield from self.settled(place, picture, timeout)
        if keeps_seat(picture, mine, settled):
            answers = yield Call(Batch((Exists(place.seat),), place), timeout)
            if answers and answers[0]:
                yield from self._proclaim(place, answers[0].czxid, timeout)
                return True
        yield Call(Batch((Delete(place.seat),), place), timeout)
        place.seat = ""
        return False
