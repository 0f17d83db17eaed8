"""Several locks in hand at once: all or none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, TypeVar, Unpack

from ..errors import LeaseLost, NotAcquired
from ..model import Ask
from ..recipes.multi import let_go_all, obtain_all
from ..recipes.options import Options
from .lease import Lease

if TYPE_CHECKING:
    from .coordinator import Coordinator

P = ParamSpec("P")
R = TypeVar("R")


class Leases(Mapping[str, Lease]):
    """The leases by name. They stand and fall together: `check()` fails when one is lost."""

    def __init__(self, coordinator: Coordinator, leases: Sequence[Lease]) -> None:
        self._coordinator = coordinator
        self._leases = {lease.name: lease for lease in leases}

    def __getitem__(self, name: str) -> Lease:
        return self._leases[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._leases)

    def __len__(self) -> int:
        return len(self._leases)

    @property
    def tokens(self) -> dict[str, int]:
        return {name: lease.token for name, lease in self._leases.items()}

    def remaining(self) -> float:
        """For how many seconds the holder may still rely on all of them."""
        return min(lease.remaining() for lease in self._leases.values())

    def check(self) -> None:
        """Raise `LeaseLost` if one of them is over."""
        for lease in self._leases.values():
            lease.check()

    def release(self) -> bool:
        """Let go of all. True if all were held until now."""
        return self._coordinator.run(let_go_all(self._coordinator.core, [lease.hold for lease in self.values()]))

    def __enter__(self) -> Leases:
        self.check()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        live = [lease for lease in self.values() if not lease.hold.forgotten]
        if not self.release() and error is None:
            for lease in live:
                if lease.reason is not None:
                    raise LeaseLost(lease.name, lease.token, lease.reason)


class LockAll:
    """Several mutexes to ask for, as one."""

    def __init__(
        self, coordinator: Coordinator, asks: Sequence[Ask], on_lost: Callable[[Lease], object] | None
    ) -> None:
        self._coordinator = coordinator
        self._asks = asks
        self._on_lost = on_lost
        self._entered: dict[int, list[Leases]] = {}

    @property
    def names(self) -> list[str]:
        """In the order in which they are taken."""
        return [ask.name for ask in self._asks]

    def acquire(self, **options: Unpack[Options]) -> Leases:
        """Wait for all and hold them. Raises `NotAcquired` once `timeout` has passed for the whole."""
        asks = [replace(ask, **options) for ask in self._asks]
        coordinator = self._coordinator
        holds = coordinator.run(obtain_all(coordinator.core, asks, asks[0].timeout, str(threading.get_ident())))
        return Leases(coordinator, [Lease(coordinator, hold, self._on_lost) for hold in holds])

    def try_acquire(self, **options: Unpack[Options]) -> Leases | None:
        """Hold them if all are free now; None if not."""
        try:
            return self.acquire(**{**options, "timeout": 0})
        except NotAcquired:
            return None

    def __enter__(self) -> Leases:
        leases = self.acquire()
        self._entered.setdefault(threading.get_ident(), []).append(leases)
        return leases

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._entered[threading.get_ident()].pop().__exit__(kind, error, tb)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def locked(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return locked
