"""What flows ask of a wire, and the one operation that is more than itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import Misconfigured
from . import jute
from .claim_state import ClaimState, SessionLink
from .jute import JuteReader, Stat
from .ops import EPHEMERAL, SEQUENTIAL, Answer, Create, CreateContainer, Created, Delete, Failure, Multi, Op
from .paths import prefix_of

ENTRY_BYTES = 200
"""Of one claim in a request, without its parent's path and its data; rather more than it takes."""
MOST_BYTES = 1_000_000
"""What a server takes in one request (jute.maxbuffer); at more it drops the connection."""


@dataclass(slots=True)
class Batch:
    """Operations that go out together, on one session; the reply is the list of their answers, in order.

    On the session of `state`, which is given one for its ttl if it has none (as are `companions`); else on that of
    `link`; else on any. If that session has ended, the answers are None.
    """

    ops: Sequence[Op]
    state: ClaimState | None = None
    companions: Sequence[ClaimState] = ()
    link: SessionLink | None = None
    leaving: bool = False
    """The place is let go of: nobody waits for its turn any longer."""


@dataclass(slots=True)
class Enter:
    """Create the node of a place. What the server answers is noted in the place, whoever may still be listening."""

    state: ClaimState
    acl: bytes
    note: Callable[[ClaimState], None] | None = None
    """Told of it, in the order of the server's answers."""
    kind = 15

    def body(self) -> bytes:
        state = self.state
        path = f"{state.parent}/{prefix_of(state.claim.owner, state.session, state.claim.spec)}"
        return jute.text(path) + jute.data(state.about) + self.acl + _EPHEMERAL_SEQUENTIAL

    def read(self, reader: JuteReader) -> Created:
        state = self.state
        created = Created(reader.text(), reader.stat())
        state.node = created.path[len(state.parent) + 1 :]
        state.token, state.born = created.stat.czxid, created.stat.ctime
        if state.link is not None:
            state.link.keep(state)
        if self.note is not None:
            self.note(state)
        return created


@dataclass(slots=True)
class EnterNew:
    """The same for a name that nobody uses: its container is made in the same step. So nobody else stands there.

    Of what is made in one step servers tell the stat of a container only; the node was made in the same transaction.
    """

    state: ClaimState
    acl: bytes
    note: Callable[[ClaimState], None]
    kind = 14

    def body(self) -> bytes:
        return Multi((CreateContainer(self.state.parent, self.acl), Enter(self.state, self.acl))).body()

    def read(self, reader: JuteReader) -> bool | Failure:
        state = self.state
        made = Multi((CreateContainer(state.parent, self.acl),)).read(reader)
        if isinstance(made, Failure):
            return made
        container, path = made
        assert isinstance(container, Created)
        assert isinstance(path, str)
        state.node = path[len(state.parent) + 1 :]
        state.token, state.born = container.stat.czxid, container.stat.ctime
        if state.link is not None:
            state.link.keep(state)
        self.note(state)
        return True


@dataclass(slots=True)
class EnterAll:
    """Create the nodes of several places in one step. Their names are noted; tokens and times have to be read."""

    states: Sequence[ClaimState]
    acl: bytes
    kind = 14

    def body(self) -> bytes:
        return Multi([Enter(state, self.acl) for state in self.states]).body()

    def read(self, reader: JuteReader) -> bool | Failure:
        made = Multi(()).read(reader)
        if isinstance(made, Failure):
            return made
        for state, path in zip(self.states, made, strict=True):
            state.node = str(path)[len(state.parent) + 1 :]
            if state.link is not None:
                state.link.keep(state)
        return True


def child_nodes(answer: Answer) -> list[str]:
    """The answer to a `List`: none if there is no such node."""
    found: list[str] = answer[0] if isinstance(answer, tuple) else []
    return found


def node_read(answer: Answer) -> tuple[bytes, Stat] | None:
    """The answer to a `Read`: None if there is no such node."""
    return answer if isinstance(answer, tuple) else None


def stat_of(answer: Answer) -> Stat | None:
    """The answer to an `Exists` or a `Write`: None if there is no such node."""
    return answer if isinstance(answer, Stat) else None


def check_size(states: Sequence[ClaimState]) -> None:
    """Refuse what a server would drop the connection at."""
    size = sum(len(state.parent) + len(state.about) + ENTRY_BYTES for state in states)
    if size > MOST_BYTES:
        raise Misconfigured(
            f"{len(states)} names, of which the first is {states[0].claim.spec.name!r}, need {size} bytes to be locked "
            f"together, and ZooKeeper takes {MOST_BYTES} in one request; lock fewer of them at once"
        )


@dataclass(slots=True)
class HandoffRelease:
    """Delete the node of a hold, and tell its successor so (see `handoff`): a node is made, and both are deleted.

    The same as a `Multi`, written in one go: the next holder waits for it.
    """

    state: ClaimState
    acl: bytes
    kind = 14

    def body(self) -> bytes:
        state = self.state
        word, path = jute.text(state.handoff_marker), jute.text(state.path)
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

    def read(self, reader: JuteReader) -> list[Answer] | Failure:
        return Multi(self.steps).read(reader)

    @property
    def steps(self) -> tuple[Op, ...]:
        state = self.state
        return Create(state.handoff_marker, b"", self.acl), Delete(state.handoff_marker), Delete(state.path)


_CREATE, _DELETE, _END = (
    jute.integer(kind) + jute.flag(done) + jute.integer(-1)
    for kind, done in ((Create.kind, False), (Delete.kind, False), (-1, True))
)
_NO_DATA, _NO_FLAGS, _ANY_VERSION = jute.data(b""), jute.integer(0), jute.integer(-1)
_EPHEMERAL_SEQUENTIAL = jute.integer(EPHEMERAL | SEQUENTIAL)
