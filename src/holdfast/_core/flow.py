"""Flows and their ops: the algorithm without I/O.

A flow is a generator that yields ops and returns a result. A driver runs it: it carries out each op and sends the
answer back in, or throws the error. Rules that every driver keeps:

1. A `Call` in flight is finished (within its timeout) before a cancellation reaches the flow: drain, then roll
   back. So when a flow sees an exception at a `Call`, no reply of its own is still under way on that wire.
2. `Shield(flow)` runs to its end whatever happens outside; the cancellation comes after it.
3. `Spawn(flow)` goes on in the background; it must end by itself, and nobody reads its result.
4. A flow never catches `GeneratorExit`, and it never touches time or chance but through `NOW` and `RANDOM`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, Protocol, TypeAlias, TypeVar

T = TypeVar("T")


class Call:
    """One request to the engine. Answers with the reply, or raises `BackendUnavailable` / `OutcomeUnknown`."""

    __slots__ = ("request", "timeout")

    def __init__(self, request: Any, timeout: float) -> None:
        self.request = request
        self.timeout = timeout


class Wait:
    """Wait for a push to this owner. Answers with its message, or None once `timeout` has passed."""

    __slots__ = ("owner", "timeout")

    def __init__(self, owner: str, timeout: float) -> None:
        self.owner = owner
        self.timeout = timeout


class Sleep:
    """A pause."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class Now:
    """A look at the driver's clock: monotonic, in seconds, and it does not stop while the machine sleeps."""

    __slots__ = ()


class Random:
    """A number from 0 (included) to 1 (excluded)."""

    __slots__ = ()


class WakeEvent(Protocol):
    """What wakes a waiting flow; set from any thread or task of its driver."""

    def set(self) -> None: ...


class WaitEvent:
    """Sleep until the event is set, or `timeout` has passed (None: until it is set)."""

    __slots__ = ("event", "timeout")

    def __init__(self, event: WakeEvent, timeout: float | None) -> None:
        self.event = event
        self.timeout = timeout


class Shield:
    """Run a flow to its end, out of reach of any cancellation. Answers with its result."""

    __slots__ = ("flow",)

    def __init__(self, flow: Flow[Any]) -> None:
        self.flow = flow


class Spawn:
    """Run a flow in the background. Answers False if it could not be started."""

    __slots__ = ("flow",)

    def __init__(self, flow: Flow[Any]) -> None:
        self.flow = flow


Op: TypeAlias = Call | Wait | Sleep | Now | Random | WaitEvent | Shield | Spawn
Flow: TypeAlias = Generator[Op, Any, T]

NOW: Final = Now()
RANDOM: Final = Random()
