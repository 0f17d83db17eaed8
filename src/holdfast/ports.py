"""The ports: what an engine must offer, a small Protocol per capability.

A backend is one engine's algorithm as flows; a wire sends its requests to the server, once blocking and once for
asyncio. Every backend has `Backend`; the other protocols are capabilities that a recipe asks for with `isinstance`, and
refuses with `Misconfigured` where they are missing.

An engine has a type of requests and one of replies, pushes among them: its backend sends these requests, and its client
or wires carry out these and no others. Type checkers compare the two where an engine is put together (`Opened`,
`Engine`). Core and drivers serve any engine: they hand requests and replies on, as objects.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Generic, Never, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from ._core.flow import Connection, Flow, PendingReply, RequestOp
from .model import Claim, Extension, Grant, LockView, Promises, Queued, Refusal
from .record import Record, Swapped

T = TypeVar("T")
Request = TypeVar("Request")
Reply = TypeVar("Reply")
Request_co = TypeVar("Request_co", covariant=True)
Reply_co = TypeVar("Reply_co", covariant=True)
Request_contra = TypeVar("Request_contra", contravariant=True)
Reply_contra = TypeVar("Reply_contra", contravariant=True)

Steps: TypeAlias = Generator[RequestOp[Request], Reply | float | None, T]
"""A flow as its driver sees it: it yields these requests, and is sent these replies."""


class Backend(Protocol[Request_co, Reply_contra]):
    """One engine's algorithm. `scheme` and `cluster` name it in a sequencer."""

    scheme: str
    cluster: str
    promises: Promises
    least_ttl: float
    """The shortest ttl that the engine can keep, in seconds."""

    def take(
        self, claim: Claim, queue: bool, within: float | None = None
    ) -> Steps[Request_co, Reply_contra, Grant | Queued | None]:
        """Take, or take a place in the line (None if `queue` is off). Idempotent: a retry finds its own claim.

        `within` bounds all of its requests together, where it is shorter than the engine's own timeout.
        """
        ...

    def turn(self, claim: Claim, queued: Queued, timeout: float) -> Steps[Request_co, Reply_contra, Grant | None]:
        """Wait for the push that grants this claim; None when it is time to `take` again."""
        ...

    def renew(
        self, claims: Sequence[Claim], within: float | None = None
    ) -> Steps[Request_co, Reply_contra, Sequence[Extension | Refusal | None]]:
        """Extend live holds, in one batch. Never brings an ended one back. None: nobody could tell for this one."""
        ...

    def release(self, claim: Claim, linger: float = 0.0) -> Steps[Request_co, Reply_contra, bool]:
        """Leave the line, waiting or holding. True if it was held until now. Idempotent."""
        ...


@runtime_checkable
class TakesMany(Protocol):
    """Several names in one step: all lines are entered at once, so two such takers cannot cross."""

    def take_all(
        self, claims: Sequence[Claim], queue: bool, within: float | None = None
    ) -> Flow[list[Grant | Queued] | None]:
        """Take or queue all; None (and nothing left) if `queue` is off and one is not free."""
        ...


@runtime_checkable
class Surveys(Protocol):
    """Who holds what, who waits."""

    def survey(self, prefix: str, exact: bool = False, contended: bool = False) -> Flow[list[LockView]]:
        """Names with this prefix; with `exact` or `contended`, at least that very name, or those with waiters."""
        ...


@runtime_checkable
class Evicts(Protocol):
    """Break a lock by hand."""

    def evict(self, name: str, token: int) -> Flow[bool]:
        """End the hold with this token; False if there is none."""
        ...


@runtime_checkable
class Recovers(Protocol):
    """Names that were not left cleanly, and are put right; what grants tell of it is `Grant.predecessor`."""

    def recovered(self, claim: Claim) -> Flow[bool]:
        """Everything is put right, says the holder (`claim.token`): its name is not unrecovered any more.

        False if it does not hold the name any more; then nothing is changed. Idempotent.
        """
        ...


@runtime_checkable
class Asks(Protocol):
    """Ask holders to give way. They learn of it with a renewal (`Extension.asked`) and do as they see fit."""

    def ask(self, name: str, token: int | None) -> Flow[int]:
        """Ask the holders of a name, or the one with this token; answers how many were asked."""
        ...


@runtime_checkable
class Guards(Protocol):
    """A condition that a user adds to a transaction of their own on the same engine."""

    def guard(self, claim: Claim) -> object:
        """What holds as long as this very grant (`claim.token`) stands, in the engine's own terms."""
        ...


@runtime_checkable
class Limits(Protocol):
    """Rate limiting: `allow` answers 0.0 for yes now, or for how long to wait.

    With `reserve`, a wait of at most that many seconds is booked: the caller sleeps and then has its turn.
    """

    def allow(self, name: str, interval: float, burst: int, cost: int, reserve: float) -> Flow[tuple[bool, float]]:
        """Whether `cost` may pass, and in how many seconds; see `holdfast._core.gcra` for the rule."""
        ...


@runtime_checkable
class Records(Protocol):
    """Small records with versions; the rules are in `holdfast.record`."""

    def read_record(self, key: str) -> Flow[Record | None]:
        """What is there."""
        ...

    def swap_record(
        self, key: str, expected: int, data: bytes | None, owner: str, ttl: float, keep: float
    ) -> Flow[Swapped]:
        """Write if the version is `expected` (0: if there is none); None as data deletes.

        It is alive for `ttl` seconds (0: not at all), and forgotten `keep` seconds after the last write or touch.
        """
        ...

    def touch_records(self, claims: Sequence[Claim]) -> Flow[list[bool | None]]:
        """Have each record (`claim.spec.name`) live for another ttl; False where its owner is another by now.

        None: nobody could tell for this one.
        """
        ...

    def list_records(self, prefix: str, after: str, limit: int) -> Flow[list[Record]]:
        """The first records behind `after` whose key begins with `prefix`, in the order of their keys."""
        ...


AnyBackend: TypeAlias = Backend[object, Never]
"""The backend of any engine."""


class Client(Protocol[Request_contra, Reply_co]):
    """One engine's client: what it decides between a request and its bytes, as flows over connections.

    Written once and run by three drivers, so its flows never meet inside a step (`_core.flow`, rule 6). One client
    belongs to one coordinator.
    """

    def call(self, request: Request_contra, deadline: float) -> Flow[Reply_co]:
        """The reply, by the deadline; or `BackendUnavailable` (not carried out) or `OutcomeUnknown`.

        A cancellation waits until this has ended, or until it dials (`Open`): then nothing is under way.
        """
        ...

    def wait(self, owner: str, deadline: float) -> Flow[Reply_co | None]:
        """The push to this owner; None at the deadline, and at once when its claim is released or all is closed.

        It may be cancelled at any op.
        """
        ...

    def close(self, deadline: float) -> Flow[None]:
        """Say goodbye where that helps, and close all connections; whoever waits is told."""
        ...

    def after_fork_in_child(self) -> None:
        """Forget what is the parent's: `abandon` its connections, and begin anew."""
        ...


class UsedConnection(Protocol):
    """What an engine's client knows of one of its connections."""

    @property
    def connection(self) -> Connection:
        """Its bytes."""
        ...


class Rest:
    """What a short cut has come to where it is not the reply; each engine has its own."""

    __slots__ = ()


class ShortCuts(Protocol[Request_contra, Reply_co]):
    """A client whose usual calls need no flow of their own: its driver does what lies between these steps.

    They are plain functions, each a step of the client (`_core.flow`, rule 6). Its `call` is made of the same ones, so
    nothing is decided twice. What is not usual goes on as a flow, in the general way.
    """

    def begin(self, request: Request_contra) -> tuple[UsedConnection, bytes] | None:
        """The bytes to be exchanged on a connection that is this call's alone. None: `join` it, or `call`."""
        ...

    def end(self, request: Request_contra, link: UsedConnection, said: bytes | BaseException) -> Reply_co | Rest:
        """The reply, from the first bytes that came, or the error that came instead of them."""
        ...

    def join(
        self, request: Request_contra, deadline: float, reply: PendingReply, start: Callable[[Flow[None]], object]
    ) -> bool:
        """Have it carried out together with others: `reply` is told the reply, or the rest. False: `call`.

        `start` begins a flow in the background, after this step.
        """
        ...

    def go_on(self, request: Request_contra, rest: Rest, deadline: float) -> Flow[Reply_co]:
        """The general way, from there."""
        ...


def short_cuts_of(client: Client[Request, Reply]) -> ShortCuts[Request, Reply] | None:
    """Those of a client, which has them as `short_cuts`; new ones after a fork."""
    found: ShortCuts[Request, Reply] | None = getattr(client, "short_cuts", None)
    return found


@dataclass(frozen=True, slots=True)
class Opened(Generic[Request, Reply]):
    """An engine that was opened for one coordinator: nothing in it is shared with another."""

    backend: Backend[Request, Reply]
    client: Client[Request, Reply]


class Wire(Protocol[Request_contra, Reply_co]):
    """Sends requests to the engine and waits for its pushes; blocking. Safe to use from many threads."""

    def call(self, request: Request_contra, timeout: float) -> Reply_co:
        """Answer within `timeout`, or raise `BackendUnavailable` (not carried out) or `OutcomeUnknown`."""
        ...

    def wait(self, owner: str, timeout: float) -> Reply_co | None:
        """The push to this owner; None after `timeout`, and at once when its claim is released or the wire closed."""
        ...

    def before_fork(self) -> None:
        """Before a fork: finish what is under way, and let go of what cannot cross one."""
        ...

    def after_fork_in_parent(self) -> None:
        """After the fork, in the parent."""
        ...

    def after_fork_in_child(self) -> None:
        """After the fork, in the child: forget what is the parent's, without touching it."""
        ...

    def close(self) -> None:
        """Let go of the engine; whoever waits is told."""
        ...


class AsyncWire(Protocol[Request_contra, Reply_co]):
    """The same for asyncio. A call that is cancelled finishes first (see `holdfast.aio.driver.Reply`)."""

    def call(self, request: Request_contra, timeout: float) -> Awaitable[Reply_co]:
        """As `Wire.call`, awaited."""
        ...

    def wait(self, owner: str, timeout: float) -> Awaitable[Reply_co | None]:
        """As `Wire.wait`, awaited."""
        ...

    def before_fork(self) -> None:
        """As `Wire.before_fork`."""
        ...

    def after_fork_in_parent(self) -> None:
        """As `Wire.after_fork_in_parent`."""
        ...

    def after_fork_in_child(self) -> None:
        """As `Wire.after_fork_in_child`."""
        ...

    async def close(self) -> None:
        """As `Wire.close`, awaited."""
        ...


class Engine(Protocol[Request, Reply]):
    """What a scheme gives: its backend, and a wire of either kind. Built from a URL; see `holdfast.backends`."""

    url: str

    @property
    def backend(self) -> Backend[Request, Reply]:
        """The algorithm."""
        ...

    def wire(self) -> Wire[Request, Reply]:
        """A new blocking wire; the caller closes it."""
        ...

    async def async_wire(self) -> AsyncWire[Request, Reply]:
        """A new wire for the running loop; the caller closes it."""
        ...


AnyWire: TypeAlias = Wire[Never, object]
AnyAsyncWire: TypeAlias = AsyncWire[Never, object]


class AnyEngine(Protocol):
    """An engine, whatever its requests are: every `Engine` is one."""

    url: str

    @property
    def backend(self) -> AnyBackend:
        """As `Engine.backend`."""
        ...

    def wire(self) -> AnyWire:
        """As `Engine.wire`."""
        ...

    async def async_wire(self) -> AnyAsyncWire:
        """As `Engine.async_wire`."""
        ...


def untyped_wire(wire: AnyWire) -> Wire[object, object]:
    """The wire for whoever hands on what the backend of the same engine asks, and nothing else: the types fit."""
    return cast(Wire[object, object], wire)


def untyped_async_wire(wire: AnyAsyncWire) -> AsyncWire[object, object]:
    """As `untyped_wire`."""
    return cast(AsyncWire[object, object], wire)
