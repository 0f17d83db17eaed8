# Generated from src/holdfast/aio/limiter.py by `make generate`: change that file, not this one.
"""The limiter of threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from ..recipes.decorator import check_blocking
from ..recipes.limiter import Rate, pass_in_turn, pass_now, used

if TYPE_CHECKING:
    from .coordinator import Coordinator

P = ParamSpec("P")
R = TypeVar("R")


class Limiter:
    """So many per period, for all processes together.

    >>> import holdfast
    >>> with holdfast.connect("memory://threads") as locks:
    ...     mail = locks.limiter("mail/user7", "2/min", burst=2)
    ...     [mail.try_acquire() for _ in range(3)]
    [True, True, False]
    """

    def __init__(self, coordinator: Coordinator, rate: Rate) -> None:
        self._coordinator = coordinator
        self._rate = rate

    def try_acquire(self, cost: int = 1) -> bool:
        """Whether it may pass now."""
        return self._coordinator._run(pass_now(self._coordinator._core.backend, self._rate, cost))

    def acquire(self, timeout: float | None = None, cost: int = 1) -> None:
        """Wait for its turn; raises `NotAcquired` at once if that is further away than `timeout`."""
        self._coordinator._run(pass_in_turn(self._coordinator._core.backend, self._rate, cost, timeout))

    def used(self) -> float:
        """How much of the burst is spent now, from 0; more than all of it, if times ahead are booked.

        Asking spends nothing.
        """
        return self._coordinator._run(used(self._coordinator._core.backend, self._rate))

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Wait for a turn before each call of a plain function."""
        check_blocking(function, repr(self))

        @wraps(function)
        def limited(*args: P.args, **kwargs: P.kwargs) -> R:
            self.acquire()
            return function(*args, **kwargs)

        return limited

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._rate.name!r}>"
