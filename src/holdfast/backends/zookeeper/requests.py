"""What flows ask of a wire, and the one operation that is more than itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import jute
from .jute import Reader
from .ops import EPHEMERAL, SEQUENTIAL, Created, Failure, Multi, Op
from .paths import prefix_of
from .places import Link, Place


@dataclass(slots=True)
class Batch:
    """Operations that go out together, on one session; the reply is the list of their answers, in order.

    On the session of `place`, which is given one for its ttl if it has none (as are `companions`); else on that of
    `link`; else on any. If that session has ended, the answers are None.
    """

    ops: Sequence[Op]
    place: Place | None = None
    companions: Sequence[Place] = ()
    link: Link | None = None


@dataclass(slots=True)
class Enter:
    """Create the node of a place. What the server answers is noted in the place, whoever may still be listening."""

    place: Place
    acl: bytes
    kind = 15

    def body(self) -> bytes:
        place = self.place
        path = f"{place.parent}/{prefix_of(place.claim.owner, place.session, place.claim.ask)}"
        return jute.text(path) + jute.data(place.about) + self.acl + _EPHEMERAL_SEQUENTIAL

    def read(self, reader: Reader) -> Created:
        place = self.place
        created = Created(reader.text(), reader.stat())
        place.node = created.path[len(place.parent) + 1 :]
        place.token, place.born = created.stat.czxid, created.stat.ctime
        if place.link is not None:
            place.link.keep(place)
        return created


@dataclass(slots=True)
class EnterAll:
    """Create the nodes of several places in one step. Their names are noted; tokens and times have to be read."""

    places: Sequence[Place]
    acl: bytes
    kind = 14

    def body(self) -> bytes:
        return Multi([Enter(place, self.acl) for place in self.places]).body()

    def read(self, reader: Reader) -> bool | Failure:
        made = Multi(()).read(reader)
        if isinstance(made, Failure):
            return made
        for place, path in zip(self.places, made, strict=True):
            place.node = path[len(place.parent) + 1 :]
            if place.link is not None:
                place.link.keep(place)
        return True


_EPHEMERAL_SEQUENTIAL = jute.integer(EPHEMERAL | SEQUENTIAL)
