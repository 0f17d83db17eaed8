"""Compare-and-swap as flows: read, change, write if nobody else has written since, again if somebody has.

1. A resource reads a value with its version, and writes a value iff the version is still the one given (None: iff it
   is not there). It answers three questions with three errors: `Missing`, `VersionConflict`, `FenceRejected`.
2. Only a conflict is tried again. A write whose reply is lost is settled by the resource, which sends the very same
   write once more: a second effect is impossible, because the first one has moved the version. What cannot be settled
   is told as `OutcomeUnknown`, and never tried again with a new value: that would count twice.
3. With a lease its token is claimed first, then the value is read, and the write is one step with the check that the
   token is still the mark: the rules, the programs and the storage of `holdfast.fenced`.
4. The change is a plain function of the value. It may run more than once, and must have no effect of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Hashable
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from .._core.flow import NOW, RANDOM, Sleep
from ..errors import Misconfigured, Missing, VersionConflict
from .tries import Retry, Stats

T = TypeVar("T")
Result = TypeVar("Result")
Change = TypeVar("Change")
Change_contra = TypeVar("Change_contra", contravariant=True)

Step: TypeAlias = Generator[object, object, Result]
"""A flow of this room: it yields requests of its resource and ops of `_core.flow` (Sleep, NOW, RANDOM)."""


class _NoDefault(Enum):
    NO_DEFAULT = "no default"


NO_DEFAULT: Final = _NoDefault.NO_DEFAULT
NoDefault: TypeAlias = _NoDefault


@dataclass(frozen=True, slots=True)
class Versioned(Generic[T]):
    """A value and the version at which it was read. The version is opaque: hand it to `swap`."""

    value: T
    version: Hashable


class VersionedResource(Protocol[T, Change_contra]):
    """Where a value is: what it takes to read it and to write it, without the I/O."""

    def claim(self, token: int) -> Step[None]: ...

    def read(self) -> Step[Versioned[T]]: ...

    def write(self, value: Change_contra, version: Hashable, token: int | None) -> Step[Versioned[T]]: ...


def update(
    resource: VersionedResource[T, Change],
    change: Callable[[T], Change],
    default: T | NoDefault,
    token: int | None,
    retry: Retry,
    stats: Stats,
) -> Step[T]:
    """Read, change and write, until it is done or a bound is met."""
    check_change(change)
    begin = yield from now()
    if token is not None:
        yield from resource.claim(token)
    tries = 0
    while True:
        try:
            current = yield from resource.read()
        except Missing:
            if default is NO_DEFAULT:
                raise
            current = Versioned(deepcopy(default), None)  # `change` may change it in place, and run again
        changed = check_changed(change(current.value))
        tries += 1
        stats.count(tries=1)
        try:
            written = yield from resource.write(changed, current.version, token)
        except VersionConflict as conflict:
            stats.count(conflicts=1)
            elapsed = (yield from now()) - begin
            pause = retry.pause(tries, elapsed, (yield from chance()))
            if pause is None:
                raise VersionConflict(conflict.resource, conflict.key, conflict.version, tries=tries) from None
            yield Sleep(pause)
        else:
            stats.count(updates=1)
            return written.value


def swap(
    resource: VersionedResource[T, Change], value: Change, version: Hashable, token: int | None, stats: Stats
) -> Step[Versioned[T]]:
    """One write, counted as one try."""
    if token is not None:
        yield from resource.claim(token)
    stats.count(tries=1)
    try:
        written = yield from resource.write(value, version, token)
    except VersionConflict:
        stats.count(conflicts=1)
        raise
    stats.count(updates=1)
    return written


def check_change(change: object) -> None:
    """Raise `Misconfigured` unless it is a plain function."""
    if not callable(change) or inspect.iscoroutinefunction(change) or inspect.isgeneratorfunction(change):
        raise Misconfigured(
            f"update() takes a plain function of the value, not {change!r}; to wait in between, read() and then swap()"
        )


def check_changed(changed: Change) -> Change:
    """What the function has made of the value; `Misconfigured` if that is nothing, or still to come."""
    if changed is None:
        raise Misconfigured(
            "the function given to update() returned None; it has to return the new value, also if it changes the old "
            "one in place. To write a null of JSON, read() and swap()"
        )
    if inspect.isawaitable(changed):
        getattr(changed, "close", lambda: None)()
        raise Misconfigured(
            "the function given to update() returned an awaitable; give a plain one, or read() and swap()"
        )
    return changed


def now() -> Step[float]:
    """The driver's clock."""
    return _number((yield NOW))


def chance() -> Step[float]:
    """A number from 0 to 1."""
    return _number((yield RANDOM))


def _number(answer: object) -> float:
    assert isinstance(answer, float)
    return answer
