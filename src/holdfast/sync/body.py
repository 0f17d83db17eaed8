"""The body of a `with`: nobody can end it from outside, so it is told (`lease.lost`) when its lease is lost.

`LeaseLost` comes out of the `with` when the body has ended without an error. (The body of a task is cancelled; see
`aio/body.py`.)
"""

from __future__ import annotations

from threading import get_ident
from types import TracebackType
from typing import Self, TypeVar

from ..base_lease import BaseLease, BaseLeases, first_lost, still_inside


class ScopedLease(BaseLease):
    """A lease as a context."""

    __slots__ = ()

    def __enter__(self) -> Self:
        self.check()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        hold = self._hold
        inside = not hold.forgotten or hold.reason == "closed"  # `still_inside`, in place
        if not self.release() and inside and error is None:
            raise first_lost([hold])

    def release(self) -> bool:
        """Let go. True if it was held until now."""
        raise NotImplementedError

    _enter = staticmethod(get_ident)
    """Begin a body; answers with the thread that it runs in."""

    def _leave(self) -> None:
        """End a body without letting go."""


L = TypeVar("L", bound=ScopedLease)


class ScopedLeases(BaseLeases[L]):
    """Several leases as one context."""

    def __enter__(self) -> Self:
        self.check()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        inside = still_inside(self._holds)
        if not self.release() and inside and error is None:
            raise first_lost(inside)

    def release(self) -> bool:
        """Let go of all. True if all were held until now."""
        raise NotImplementedError

    _enter = staticmethod(get_ident)
    """Begin a body; answers with the thread that it runs in."""
