"""What a wire needs of an engine: its connections, how it listens, and its codec; a Protocol each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from ....model import Claim
from ...queue_backend import Allow, Survey
from ..error_mapping import ErrorMapping

Order: TypeAlias = Any
"""One statement with its values and the way its reply is read. A codec writes it, a link carries it out."""
Answer: TypeAlias = Callable[[Any, BaseException | None], None]
Wake: TypeAlias = Any
"""Where pushes reach a coordinator, as the engine writes it; None while nobody listens."""
Heard: TypeAlias = Callable[[str, int], None]
"""Takes a push: to whom, and its token."""


class Greeting(Protocol):
    @property
    def pooled(self) -> bool:
        """Whether somebody between us and the server shares sessions out, so that none is ours alone."""
        ...


class Link(Protocol):
    """One blocking connection, for one caller at a time. Raises `Refused` or `Silence`."""

    @property
    def greeting(self) -> Greeting: ...

    @property
    def told_id(self) -> int:
        """The server's number of this session."""
        ...

    @property
    def under_way(self) -> Order | None:
        """What was started, and not yet answered."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the server has ended it while nothing was under way: what is sent now would be lost."""
        ...

    def ask(self, order: Order, timeout: float) -> Any:
        """One order, and its reply."""
        ...

    def say(self, text: bytes, timeout: float) -> Any:
        """Words without values."""
        ...

    def start(self, order: Order) -> None:
        """Send an order whose reply may be long in coming; `poll` for it."""
        ...

    def poll(self, timeout: float) -> Any:
        """The reply to what was started, or None if it does not come within `timeout`."""
        ...

    def hang_up(self) -> None:
        """Make whoever waits on it stop waiting; from any thread."""
        ...

    def disown(self) -> None:
        """In a forked child: the session is the parent's."""
        ...

    def close(self) -> None: ...


class AsyncLink(Protocol):
    """One connection for asyncio: orders leave at once, one behind the other."""

    closed: bool

    @property
    def greeting(self) -> Greeting: ...

    @property
    def told_id(self) -> int: ...

    def look(self) -> bool:
        """Whether it is open: it is closed if the server has ended it, also if the loop had no time to notice yet."""
        ...

    def ask(self, order: Order, answer: Answer) -> None:
        """Have an order carried out; `answer` is called with the reply, or with `Refused` or `Silence`."""
        ...

    def fail(self, why: str) -> None:
        """No reply can be trusted any more: whatever was under way is unknown."""
        ...

    def disown(self) -> None: ...

    def close(self) -> None: ...


class Dialling(Protocol):
    """Makes greeted connections to one server. `words` are said on it before anything else.

    Wires have it dial aside (see `dial`), so a caller never waits longer than it wants to; but it must end by itself.
    """

    timeout: float

    @property
    def translation(self) -> ErrorMapping: ...

    def dial(self, words: Sequence[bytes] = ()) -> Link: ...

    async def dial_async(self, words: Sequence[bytes] = ()) -> AsyncLink: ...


class Ear(Protocol):
    """A connection that listens, for one listener at a time."""

    @property
    def wake(self) -> Wake: ...

    def hear(self, timeout: float) -> Iterable[tuple[str, int]]:
        """The pushes (owner, token) that come within `timeout`; fewer if it is rung. Raises `Silence` once deaf."""
        ...

    def set(self) -> None:
        """Have a listener look at its inbox; from any thread."""
        ...

    def hang_up(self) -> None: ...

    def disown(self) -> None: ...

    def close(self) -> None: ...


class AsyncEar(NamedTuple):
    """The same on a loop, where whatever is heard is handed over."""

    wake: Wake
    link: AsyncLink


class Hearing(Protocol):
    """One coordinator's way to listen. Where it listens anew, it does so under the same address, if it can."""

    def listen(self) -> Ear: ...

    async def listen_async(self, heard: Heard) -> AsyncEar: ...


class Codec(Protocol):
    """Writes the orders of the lock table."""

    def write(self, request: Any, wake: Wake = ..., waited: bool = ...) -> Order:
        """Any verb. `wake`: where a push reaches the asker; `waited`: what is released had to be waited for."""
        ...

    def tidy(self, most: int) -> Order:
        """Housekeeping: a look at about so many names, other ones each time; what is over is dropped."""
        ...


class SessionCodec(Protocol):
    """Writes the orders of session locks."""

    def take(self, claim: Claim, queue: bool, seen: bool) -> Order:
        """Take it if it is free: its token, or 0. `seen`: others have seen it waiting."""
        ...

    def wait(self, claim: Claim) -> Order:
        """In the server's own line: its token, or 0 if that took very long."""
        ...

    def queue(self, claim: Claim) -> Order:
        """Be seen waiting."""
        ...

    def leave(self, owner: str) -> Order:
        """No longer seen waiting."""
        ...

    def unlock(self, name: str) -> Order:
        """Whether this session held it."""
        ...

    def alive(self) -> Order: ...

    def give_up(self, session: int) -> Order:
        """Have another session's statement end; said on a connection of its own."""
        ...

    def write(self, request: Survey | Allow) -> Order: ...

    def tidy(self, most: int) -> Order: ...
