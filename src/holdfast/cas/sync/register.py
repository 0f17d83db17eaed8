# Generated from src/holdfast/cas/aio/register.py by `make generate`: change that file, not this one.
"""What all registers have in common: a value that is read with its version, and written if it is still at it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from ..._core.pickling import unpicklable
from ...errors import Misconfigured
from ...fenced.holder import Holder, token_of
from .. import update
from ..tries import Retry, Stats
from ..update import NO_DEFAULT, NoDefault, Versioned, VersionedResource
from .runner import run

T = TypeVar("T")
Change = TypeVar("Change")

RETRY = Retry()


class Register(Generic[T, Change]):
    """A value that is changed without a lock. Made as `RedisKey`, `RedisHash`, `EtcdKey`, `ZNode` or `VersionedFile`.

    `stats` says how many updates there were, how many tries they took, and how many tries met a conflict.
    """

    def __init__(
        self,
        resource: VersionedResource[T, Change],
        perform: Callable[[Any], object],
        retry: Retry,
        stats: Stats | None,
    ) -> None:
        if not isinstance(retry, Retry) or not isinstance(stats, Stats | None):
            raise Misconfigured(f"retry is a cas.Retry and stats a cas.Stats, not {retry!r} and {stats!r}")
        self._resource = resource
        self._perform = perform
        self._retry = retry
        self.stats = Stats() if stats is None else stats

    __reduce__ = unpicklable("make it there, on a client of that process")

    def read(self) -> Versioned[T]:
        """The value and its version; `Missing` if it is not there."""
        return run(self._resource.read(), self._perform)

    def update(
        self, change: Callable[[T], Change], *, default: T | NoDefault = NO_DEFAULT, lease: Holder | None = None
    ) -> T:
        """Read, write `change(value)` if nobody else has written since, and try again if somebody has.

        Answers with what was written. `change` is a plain function without effects of its own: it may run again. What
        is not there is `Missing`, or begins as `default`. With `lease` its token is part of the condition: a stale
        holder gets `FenceRejected`. `VersionConflict` after all the tries that `retry` allows; `OutcomeUnknown` if a
        reply was lost and it cannot be told whether the value was written: it was at most once.
        """
        flow = update.update(self._resource, change, default, _token(lease), self._retry, self.stats)
        return run(flow, self._perform)

    def swap(self, value: Change, version: Hashable, *, lease: Holder | None = None) -> Versioned[T]:
        """Write the value if it is still at the version that `read` gave, or raise `VersionConflict`. One try."""
        if version is None:
            raise Misconfigured("swap() takes the version that read() gave; for what is not there yet, create()")
        return run(update.swap(self._resource, value, version, _token(lease), self.stats), self._perform)

    def create(self, value: Change, *, lease: Holder | None = None) -> Versioned[T]:
        """Write the value if it is not there yet, or raise `VersionConflict`. One try."""
        return run(update.swap(self._resource, value, None, _token(lease), self.stats), self._perform)


def _token(lease: Holder | None) -> int | None:
    return None if lease is None else token_of(lease)
