"""Bugs of `once`."""

from __future__ import annotations

from typing import Any

from holdfast._core.flow import Flow
from holdfast.errors import FenceRejected
from holdfast.recipes import once
from holdfast.recipes.once_record import AttemptRecord

from .. import once_callers
from .registry import Patch, bug


@bug("a key has one result", "once")
def a_zombie_believes_itself(patch: Patch) -> None:
    """Whoever was succeeded is not told so when it completes."""
    real = once.complete

    def complete(*given: Any) -> Flow[None]:
        try:
            yield from real(*given)
        except FenceRejected:
            pass

    patch(once, "complete", complete)


@bug("a result has its effect", "once")
def what_is_given_up_is_done(patch: Patch) -> None:
    """An attempt that failed leaves an empty result, and nobody does the work."""
    patch(AttemptRecord, "over", lambda self, state, error: self.done(b"nothing"))


@bug("the fence loses nothing", "once")
def effects_without_a_fence(patch: Patch) -> None:
    """The resource is looked at and written to without the attempt's token: a zombie does the work again."""
    real = once_callers.SimCaller._work

    def work(self: once_callers.SimCaller, key: str, token: int) -> Flow[None]:
        yield from real(self, key, 1)

    patch(once_callers.SimCaller, "_work", work)
