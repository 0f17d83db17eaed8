"""What flows ask of a wire, and the one operation that is more than itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import Misconfigured
from . import jute
from .jute import Reader
from .ops import EPHEMERAL, SEQUENTIAL, Create, Created, Delete, Failure, Multi, Op
from .paths import prefix_of
from .places import Link, Place

ENTRY_BYTES = 200
"""Of one claim in a request, without its parent's path and its data; rather more than it takes."""
MOST_BYTES = 1_000_000
"""What a server takes in one request (jute.maxbuffer); at more it drops the connection."""


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
    leaving: bool = False
    """The place is let go of: nobody waits for its turn any longer."""


@dataclass(slots=True)
class Enter:
    """Create the node of a place. What the server answers is noted in the place, whoever may still be listening."""

    place: Place
    acl: bytes
    kind = 15

    def body(self) -> bytes:
        place = self.place
        path = f"{place.parent}/{prefix_of(place.claim.owner, place.session, place.claim.spec)}"
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


def check_size(places: Sequence[Place]) -> None:
    """Refuse what a server would drop the connection at."""
    size = sum(len(place.parent) + len(place.about) + ENTRY_BYTES for place in places)
    if size > MOST_BYTES:
        raise Misconfigured(
            f"{len(places)} names, of which the first is {places[0].claim.spec.name!r}, need {size} bytes to be locked "
            f"together, and ZooKeeper takes {MOST_BYTES} in one request; lock fewer of them at once"
        )


@dataclass(slots=True)
class Farewell:
    """Delete the node of a hold, and tell its heir so (see `handoff`): a node is made, and both are deleted.

    The same as a `Multi`, written in one go: the next holder waits for it.
    """

    place: Place
    acl: bytes
    kind = 14

    def body(self) -> bytes:
        place = self.place
        word, path = jute.text(place.farewell), jute.text(place.path)
        return b"".join(
            (
                _CREATE,
                word,
                _NO_DATA,
                self.acl,
                _NO_FLAGS,
                _DELETE,
                word,
                _ANY_VERSION,
                _DELETE,
                path,
                _ANY_VERSION,
                _END,
            )
        )

    def read(self, reader: Reader) -> list[Any] | Failure:
        return Multi(self.steps).read(reader)

    @property
    def steps(self) -> tuple[Op, ...]:
        place = self.place
        return Create(place.farewell, b"", self.acl), Delete(place.farewell), Delete(place.path)


_CREATE, _DELETE, _END = (
    jute.integer(kind) + jute.flag(done) + jute.integer(-1)
    for kind, done in ((Create.kind, False), (Delete.kind, False), (-1, True))
)
_NO_DATA, _NO_FLAGS, _ANY_VERSION = jute.data(b""), jute.integer(0), jute.integer(-1)
_EPHEMERAL_SEQUENTIAL = jute.integer(EPHEMERAL | SEQUENTIAL)
