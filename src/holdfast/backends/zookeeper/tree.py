"""Where everything of a namespace stands, and how the ground is prepared: see `paths` for the picture."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..._core.flow import Call, Flow
from .claim_state import ClaimState
from .error_mapping import refused
from .known_line import KnownLine
from .ops import EXISTS, NO_NODE, Create, CreateContainer, Failure, List, Prepared
from .paths import entry_of, step
from .requests import Batch

KNOWN_FOR_S = 30.0
"""For how long a container counts as being there; the server removes empty ones after a minute or so."""
MOST_KNOWN_COUNT = 50_000
ANEW_COUNT = 3
"""Transactions: the old claim deleted, the parent deleted, our own node; the parent is made with its first child."""


@dataclass(slots=True)
class ParentState:
    """Where a name's line stands: its parent, the request that lists it, and until when it counts as being there.

    `last` is of a claim of ours that stood there alone and has left, with nothing behind it: its number, token and
    session. A new node that `follows` it is alone as well, and nobody has to look: the server gives each child the next
    number, so nobody has come in between. Numbers begin anew with a new parent; but to remove the old claim and the
    parent, to make that again, and one after the other as many children as the number says, takes more transactions
    than lie between the two nodes (`ANEW_COUNT`). Across sessions nothing is concluded: the servers may
    have lost their data.
    """

    parent: str
    listing: Prepared
    known_until: float = 0.0
    last: tuple[int, int, int] | None = None
    steady: bool = False
    """One has followed another: it is worth trying."""
    tail: ClaimState | None = None
    """The claim of ours that came last. If the next one has the next number, nobody of another client stands between
    them: it stands right behind a claim of ours, for as long as that stands, and nobody has to look who is before it.
    While that claim stands the parent does, so its numbers go on. If it has a later number it `lags`: others may stand
    between them, which matters once that claim is granted, and not before. So one listing does for many."""
    known: KnownLine | None = None
    """Of the others: what the last listing has told."""
    used_until: float = 0.0
    """So long it counts as being used: whoever uses it again leaves its container there."""
    entering_count: int = 0
    """Claims of ours that have been sent for, and not yet answered."""

    @property
    def crowded(self) -> bool:
        """Somebody of ours stands there, or is about to: whoever comes now will most likely be behind that one."""
        return self.entering_count > 0 or (self.tail is not None and self.tail.stands)

    def entered(self, state: ClaimState) -> None:
        """In the order in which the server answers: what it made, and where that stands."""
        tail, number = self.tail, int(state.node[-10:])
        if (known := self.known) is not None and (entry := entry_of(state.node)) is not None:
            known.append(entry, state.session)
        if tail is not None and tail.stands and tail.session == state.session:
            last = int(tail.node[-10:])
            if last > number:
                return
            if tail.claim.spec.capacity == state.claim.spec.capacity and tail.claim.spec.fair:
                state.lags = last + 1 != number
                state.follows = tail if not state.lags or tail.takes_all else None
        self.tail = state

    def follows(self, state: ClaimState) -> bool:
        if (last := self.last) is None:
            return False
        number = int(state.node[-10:])
        before, token, session = last
        return number == before + 1 and 0 < state.token - token < number + ANEW_COUNT and state.session == session

    def alone(self, state: ClaimState) -> None:
        """This place stands here, and nobody else."""
        self.steady = self.follows(state)
        self.last = self.known = None
        state.alone = not state.claim.spec.hold_at_least

    def left(self, state: ClaimState) -> None:
        """It is deleted; and its parent, if that was made for it."""
        if state.made_parent:
            self.known_until, self.last = 0.0, None
            return
        if self.known is not None:
            self.known.remove(state.node, state.session)
        if state.alone:
            self.last = int(state.node[-10:]), state.token, state.session


@dataclass(slots=True)
class Guess:
    """Whether a name that was not used lately by us is one that nobody uses."""

    is_new: bool = True


@dataclass(frozen=True, slots=True)
class Tree:
    """`root` is the node of the namespace; `names` is what the path of a name begins with.

    A name that was not used lately is taken together with the making of its container, and the two of them go together
    if nobody else has come: so names that are used once leave nothing behind. Where others use the same names that
    would be refused, and asked again; so it is done if the last container that was asked for was not there yet.
    """

    root: str
    acl: bytes
    guess: Guess = field(default_factory=Guess)
    _parent_states: dict[str, ParentState] = field(default_factory=dict)

    @classmethod
    def of(cls, chroot: str, namespace: str, acl: bytes) -> Tree:
        return cls(f"{chroot}/{step(namespace)}", acl)

    @property
    def names(self) -> str:
        return self.root + "/"

    def parent_state(self, name: str) -> ParentState:
        """Of a name; remembered, for most names are used again."""
        found = self._parent_states.get(name)
        if found is None:
            if len(self._parent_states) > MOST_KNOWN_COUNT:
                self._parent_states.clear()
            parent = self.names + step(name)
            found = self._parent_states[name] = ParentState(parent, Prepared(List(parent)))
        return found

    def plant(self, parent: str, timeout: float) -> Flow[None]:
        """The container of a name, and all above it. Another client may do the same at the same time."""
        for _ in range(2):
            [made] = (yield Call(Batch((CreateContainer(parent, self.acl),)), timeout)) or [None]
            if not isinstance(made, Failure) or made.code == EXISTS:
                return
            if made.code != NO_NODE:
                raise refused(made, f"making {parent}")
            yield from self.found(timeout)

    def found(self, timeout: float, *more: str) -> Flow[None]:
        """The nodes that stay: the root with all above it, and more below it."""
        steps = self.root.split("/")[1:]
        paths = ["/" + "/".join(steps[: depth + 1]) for depth in range(len(steps))]
        paths += [self.names + each for each in more]
        answers = yield Call(Batch(tuple(Create(path, b"", self.acl) for path in paths)), timeout)
        for path, made in zip(paths, answers or (), strict=False):
            if isinstance(made, Failure) and made.code != EXISTS:
                raise refused(made, f"making {path}")
