"""The ports: what an engine must offer, a small Protocol per capability.

A backend is one engine's algorithm as flows; a wire sends its requests through a client library, once blocking and
once for asyncio. Every backend has `Backend`; the other protocols are capabilities that a recipe asks for with
`isinstance`, and refuses with `Misconfigured` where they are missing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from ._core.flow import Flow
from .model import Claim, Extension, Grant, LockView, Promises, Queued, Refusal

Request = TypeVar("Request", contravariant=True)
Reply = TypeVar("Reply", covariant=True)


class Backend(Protocol):
    """One engine's algorithm. `scheme` and `cluster` name it in a sequencer."""

    scheme: str
    cluster: str
    promises: Promises
    least_ttl: float
    """The shortest ttl that the engine can keep, in seconds."""

    def take(self, claim: Claim, queue: bool, within: float | None = None) -> Flow[Grant | Queued | None]:
        """Take, or take a place in the line (None if `queue` is off). Idempotent: a retry finds its own claim.

        `within` bounds the request, where it is shorter than the engine's own timeout.
        """
        ...

    def turn(self, claim: Claim, queued: Queued, timeout: float) -> Flow[Grant | None]:
        """Wait for the push that grants this claim; None when it is time to `take` again."""
        ...

    def renew(self, claims: Sequence[Claim], within: float | None = None) -> Flow[Sequence[Extension | Refusal | None]]:
        """Extend live holds, in one batch. Never brings an ended one back. None: nobody could tell for this one."""
        ...

    def release(self, claim: Claim, linger: float = 0.0) -> Flow[bool]:
        """Leave the line, waiting or holding. True if it was held until now. Idempotent."""
        ...


@runtime_checkable
class TakesMany(Protocol):
    """Several names in one step: all lines are entered at once, so two such takers can not cross."""

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
class Asks(Protocol):
    """Ask holders to give way. They learn of it with a renewal (`Extension.asked`) and do as they see fit."""

    def ask(self, name: str, token: int | None) -> Flow[int]:
        """Ask the holders of a name, or the one with this token; answers how many were asked."""
        ...


@runtime_checkable
class Guards(Protocol):
    """A condition that a user adds to a transaction of their own on the same engine."""

    def guard(self, claim: Claim) -> Any:
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


class Client(Protocol[Request, Reply]):
    """One engine's client: what it decides between a request and its bytes, as flows over connections.

    Written once and run by three drivers, so its flows never meet inside a step (`_core.flow`, rule 6). One client
    belongs to one coordinator.
    """

    def call(self, request: Request, deadline: float) -> Flow[Reply]:
        """The reply, by the deadline; or `BackendUnavailable` (not carried out) or `OutcomeUnknown`.

        A cancellation waits until this has ended, or until it dials (`Open`): then nothing is under way.
        """
        ...

    def wait(self, owner: str, deadline: float) -> Flow[object | None]:
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


@dataclass(frozen=True, slots=True)
class Opened(Generic[Request, Reply]):
    """An engine that was opened for one coordinator: nothing in it is shared with another."""

    backend: Backend
    client: Client[Request, Reply]


class Wire(Protocol):
    """Sends requests to the engine and waits for its pushes; blocking. Safe to use from many threads."""

    def call(self, request: Any, timeout: float) -> Any:
        """Answer within `timeout`, or raise `BackendUnavailable` (not carried out) or `OutcomeUnknown`."""
        ...

    def wait(self, owner: str, timeout: float) -> Any:
        """The push to this owner; None after `timeout`, and at once when its claim is released or the wire closed."""
        ...

    def before_fork(self) -> None:
        """Before a fork: finish what is under way, and let go of what can not cross one."""
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


class AsyncWire(Protocol):
    """The same for asyncio. A call that is cancelled finishes first (see `holdfast.aio.driver.Reply`)."""

    def call(self, request: Any, timeout: float) -> Awaitable[Any]:
        """As `Wire.call`, awaited."""
        ...

    def wait(self, owner: str, timeout: float) -> Awaitable[Any]:
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


class Engine(Protocol):
    """What a scheme gives: its backend, and a wire of either kind. Built from a URL; see `holdfast.backends`."""

    url: str

    @property
    def backend(self) -> Backend:
        """The algorithm."""
        ...

    def wire(self) -> Wire:
        """A new blocking wire; the caller closes it."""
        ...

    async def async_wire(self) -> AsyncWire:
        """A new wire for the running loop; the caller closes it."""
        ...
