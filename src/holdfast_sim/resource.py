"""What the locks protect: a counter per name that everybody reads, raises by one and writes back.

Each stands twice: behind a fence (a claim raises the mark iff token ≥ mark, a write is atomic with
token == mark), and bare. An accepted write that does not raise the counter by one has undone an earlier one. That
never happens behind the fence, whatever else goes wrong; bare, it is counted, for contrast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.errors import FenceRejected

from .violation import Violation

if TYPE_CHECKING:
    from .wire import PendingRequest
    from .world import World


@dataclass(slots=True)
class ReadCounter:
    """Read the bare counter. Reply: its value."""

    name: str


@dataclass(slots=True)
class WriteCounter:
    """Write the bare counter."""

    name: str
    value: int


@dataclass(slots=True)
class ClaimRead:
    """Claim the fenced counter, then read it. Reply: its value."""

    name: str
    token: int


@dataclass(slots=True)
class FencedWrite:
    """Write the fenced counter."""

    name: str
    token: int
    value: int


class Fenced:
    """A counter behind a fence."""

    __slots__ = ("mark", "name", "value")

    def __init__(self, name: str) -> None:
        self.name = name
        self.mark = 0
        self.value = 0

    def claim(self, token: int) -> int:
        if token < self.mark:
            raise FenceRejected(self.name, token, self.mark)
        self.mark = token
        return self.value

    def write(self, token: int, value: int) -> None:
        if token != self.mark:
            raise FenceRejected(self.name, token, self.mark)
        self.value = value


class Resources:
    """All counters, in one place that never fails; only the way to it does."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._fenced: dict[str, Fenced] = {}
        self._bare: dict[str, int] = {}
        self.promised = True
        """False once the engine has lost its data: tokens may have begun anew."""

    def receive(self, pending: PendingRequest, _again: bool) -> None:
        try:
            reply = self.carry_out(pending.request)
        except FenceRejected as error:
            self._world.count("fence refuses")
            self._world.trace("resource", "refuses {}: its mark is {}", pending.request, error.mark)
            self._world.network.reply(pending, None, error)
        else:
            self._world.trace("resource", "carries out {}: {}", pending.request, reply)
            self._world.network.reply(pending, reply)

    def carry_out(self, request: Any) -> Any:
        match request:
            case ClaimRead(name=name, token=token):
                return self._fence(name).claim(token)
            case FencedWrite(name=name, token=token, value=value):
                fence = self._fence(name)
                before = fence.value
                fence.write(token, value)
                self._world.count("fenced updates")
                if value != before + 1 and self.promised:
                    raise Violation(
                        "the fence loses nothing",
                        f"{name!r} went from {before} to {value} by token {token}: an update is lost",
                    )
            case ReadCounter(name=name):
                return self._bare.get(name, 0)
            case WriteCounter(name=name, value=value):
                self._world.count("bare updates")
                if value != self._bare.get(name, 0) + 1:
                    self._world.count("bare updates lost")
                self._bare[name] = value
            case _:
                raise TypeError(f"not a request to the resource: {request!r}")
        return None

    def fenced_value(self, name: str) -> int:
        """The present value of a fenced counter."""
        return self._fence(name).value

    def _fence(self, name: str) -> Fenced:
        return self._fenced.setdefault(name, Fenced(name))
