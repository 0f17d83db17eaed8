"""What a holder sees of a lease, the same for threads and for tasks. How it waits and calls differs: `sync`, `aio`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from os import getpid
from types import FrameType
from typing import Any, TypeAlias, TypeVar

from ._core.coordinator_core import CoordinatorCore
from ._core.lease import Hold
from ._core.pickling import unpicklable
from .clock import now
from .errors import LeaseLost
from .model import Predecessor, Sequencer, State
from .registry import notice_fork


class BaseLease:
    """The part of a lease that only reads."""

    __slots__ = ("__weakref__", "_core", "_hold")

    _core: CoordinatorCore
    _hold: Hold

    @property
    def name(self) -> str:
        """What is held."""
        return self._hold.claim.spec.name

    @property
    def token(self) -> int:
        """Strictly growing per name: hand it to the fence at the resource."""
        return self._hold.token

    @property
    def owner(self) -> str:
        """The id of this acquisition, as `survey` shows it; no other has it."""
        return self._hold.claim.owner

    @property
    def predecessor(self) -> Predecessor | None:
        """The last holder of this name and how its hold ended; None if the engine remembers none.

        If that was not clean, what it was doing may be half done: see `recover=` of `lock`.
        """
        return self._hold.predecessor

    @property
    def reason(self) -> str | None:
        """Why it was lost: expired, refused, session, evicted, forked, max_hold or closed."""
        self._notice()
        return self._hold.reason

    @property
    def state(self) -> State:
        """Where it is in its life: held, jeopardy, lost or released."""
        self._notice()
        return self._hold.state

    def remaining(self) -> float:
        """For how many seconds the holder may still rely on it, if no renewal succeeds."""
        self._notice()
        return max(0.0, self._hold.deadline - now()) if self._hold.alive else 0.0

    def check(self) -> None:
        """Raise `LeaseLost` if it is over."""
        self._notice()
        self._hold.check(now())

    def sequencer(self) -> Sequencer:
        """The grant as one line of text, for others to check."""
        return self._core.sequencer(self._hold)

    __reduce__ = unpicklable("hand on its token, or its sequencer(), which is text")

    def guard(self) -> Any:
        """What to add to a transaction of your own on the same engine, so that it fails once this grant is over.

        A comparison for etcd, a check for ZooKeeper; other engines have fences: `holdfast.fenced`, `holdfast.sql`.
        """
        return self._core.guard(self._hold)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} token={self.token} {self.state.value}>"

    def _notice(self) -> None:
        """A deadline that has passed counts, whether or not the keeper has noticed; so does a fork."""
        if self._core.pid != getpid():
            notice_fork()
        hold = self._hold
        if hold.alive and (reason := hold.over(now())) is not None:
            hold.lose(reason)


L = TypeVar("L", bound=BaseLease)


class BaseLeases(Mapping[str, L]):
    """Several leases by name. `check()` fails when one is lost."""

    def __init__(self, leases: Iterable[L]) -> None:
        self._leases = {lease.name: lease for lease in leases}

    def __getitem__(self, name: str) -> L:
        return self._leases[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._leases)

    def __len__(self) -> int:
        return len(self._leases)

    @property
    def tokens(self) -> dict[str, int]:
        """The token of each, by name: hand each to the fence of its resource."""
        return {name: lease.token for name, lease in self._leases.items()}

    @property
    def _holds(self) -> list[Hold]:
        """The hold of each."""
        return [lease._hold for lease in self._leases.values()]

    def remaining(self) -> float:
        """For how many seconds the holder may still rely on all of them."""
        return min(lease.remaining() for lease in self._leases.values())

    def check(self) -> None:
        """Raise `LeaseLost` if one of them is over."""
        for lease in self._leases.values():
            lease.check()


def still_inside(holds: Iterable[Hold]) -> list[Hold]:
    """Of the holds of a `with` body, those that are not released yet (by the holder, or by `close`)."""
    return [hold for hold in holds if not hold.forgotten or hold.reason == "closed"]


def first_lost(holds: Iterable[Hold]) -> LeaseLost:
    """What to raise when not all of these were held until the end."""
    lost = [hold for hold in holds if hold.reason is not None] or list(holds)
    return LeaseLost(lost[0].claim.spec.name, lost[0].token, lost[0].reason or "refused")


V = TypeVar("V")
Entered: TypeAlias = dict[FrameType, list[tuple[object, V]]]
"""What was entered through one lock object, which many may share: by the frame of the `with`, and by actor."""


def leave_last(entered: Entered[V], frame: FrameType, me: object) -> V:
    """What this `with` statement entered last.

    It is known by its frame, so it may be left in another thread or task than it was entered in, as frameworks do. An
    exit stack enters and leaves in frames of its own: then it is what this thread or task entered last.
    """
    if frame not in entered:
        others = [(one, who) for one, stack in entered.items() for who, _ in stack]
        frame = next((one for one, who in reversed(others) if who == me), others[-1][0])
    stack = entered[frame]
    _, last = stack.pop()
    if not stack:
        entered.pop(frame, None)
    return last
