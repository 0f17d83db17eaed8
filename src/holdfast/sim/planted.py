"""Known bugs, planted into the code that ships: the watchers must find each of them.

Each is a small function that patches one thing; `planted(name)` puts it in for the length of a `with`. Nothing that
ships has a switch for this. The numbers in brackets are the traps of other libraries that they are taken from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._core.flow import NOW, Flow
from .._core.line import Line, Place
from ..backends.line import LineBackend
from ..backends.memory.store import MemoryStore
from ..errors import FenceRejected, Misconfigured
from ..model import Claim, Extension, Grant, Queued, Refusal
from . import driver, resource

Patch = Callable[[Any, str, Any], None]
Plant = Callable[[Patch], None]
BUGS: dict[str, Plant] = {}


def bug(plant: Plant) -> Plant:
    BUGS[plant.__name__.replace("_", "-")] = plant
    return plant


@contextmanager
def planted(name: str | None) -> Iterator[None]:
    """Have a bug in the code, and then no more. None plants nothing."""
    if name is not None and name not in BUGS:
        raise Misconfigured(f"no bug is called {name!r}; there are: {', '.join(BUGS)}")
    undo: list[tuple[Any, str, Any]] = []

    def patch(owner: Any, attribute: str, value: Any) -> None:
        undo.append((owner, attribute, getattr(owner, attribute)))
        setattr(owner, attribute, value)

    try:
        if name is not None:
            BUGS[name](patch)
        yield
    finally:
        for owner, attribute, value in reversed(undo):
            setattr(owner, attribute, value)


@bug
def no_drain(patch: Patch) -> None:
    """A cancellation is delivered at once, and the reply in flight is dropped (14)."""

    def cancel(task: driver.Task) -> None:
        task.calling = False
        drained(task)

    drained = driver.Task.cancel
    patch(driver.Task, "cancel", cancel)


@bug
def release_without_owner_check(patch: Patch) -> None:
    """A release removes the holder, whoever that is (17)."""

    def release(self: Line, owner: str, now: int, clock: int, linger: int = 0) -> tuple[bool, list[Place]]:
        holders = [place.owner for place in self.places if place.token]
        known = self.find(owner) is not None or not holders
        return guarded(self, owner if known else holders[0], now, clock, linger)

    guarded = Line.release
    patch(Line, "release", release)


@bug
def token_from_a_deleted_counter(patch: Patch) -> None:
    """The counter goes with the line, and begins at 1 again (6)."""

    def promote(self: Line, now: int, clock: int) -> list[Place]:
        return minted(self, now, 0)

    def save(self: MemoryStore, name: str, kept: Line) -> None:
        remembered(self, name, kept)
        self.marks.pop(name, None)

    minted, remembered = Line.promote, MemoryStore.save
    patch(Line, "promote", promote)
    patch(MemoryStore, "save", save)


@bug
def check_on_write_fence(patch: Patch) -> None:
    """The fence compares tokens when it is written to, and not when it is claimed (43)."""

    def claim(self: resource.Fenced, token: int) -> int:
        return self.value

    def write(self: resource.Fenced, token: int, value: int) -> None:
        if token < self.mark:
            raise FenceRejected(self.name, token, self.mark)
        self.mark, self.value = token, value

    patch(resource.Fenced, "claim", claim)
    patch(resource.Fenced, "write", write)


@bug
def overtaking_in_the_line(patch: Patch) -> None:
    """Whoever fits is let in, in turn or not."""

    def promote(self: Line, now: int, clock: int) -> list[Place]:
        fair = [place for place in self.places if place.fair]
        for place in fair:
            place.fair = False
        promoted = in_turn(self, now, clock)
        for place in fair:
            place.fair = True
        return promoted

    in_turn = Line.promote
    patch(Line, "promote", promote)


@bug
def validity_from_the_reply(patch: Patch) -> None:
    """Validity counts from when the reply came, not from when the request was sent (2)."""

    def take(self: LineBackend, claim: Claim, *args: Any) -> Flow[Grant | Queued | None]:
        outcome = yield from honest_take(self, claim, *args)
        now: float = yield NOW
        return Grant(outcome.token, now, outcome.ttl) if isinstance(outcome, Grant) else outcome

    def renew(self: LineBackend, claims: Any, *args: Any) -> Flow[list[Extension | Refusal]]:
        replies = yield from honest_renew(self, claims, *args)
        now: float = yield NOW
        return [Extension(now, r.ttl) if isinstance(r, Extension) else r for r in replies]

    honest_take, honest_renew = LineBackend.take, LineBackend.renew
    patch(LineBackend, "take", take)
    patch(LineBackend, "renew", renew)
