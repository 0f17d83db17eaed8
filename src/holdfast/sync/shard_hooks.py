# Generated from src/holdfast/aio/shard_hooks.py by `make generate`: change that file, not this one.
"""The hooks of a member of a partition: those for one shard are called one after the other, as things have happened.

1. A hook is called when the last one for the same shard has ended, also that of an earlier lease: whoever is late to
   stop the work on a shard would stop the work that has been started since. A thread that hangs holds up its shard:
   the member leaves the shard to others until then (`busy`).
2. `on_assigned` is called if the shard is still owned by then, and not to be given up; `on_revoking` and `on_lost`,
   unless the `on_assigned` of the same lease was not called, or has raised.
3. A loss is told once, by the keeper's hook or by the loop, whichever is there first: the loop may have taken the shard
   again before the keeper's hook has a thread.
4. With threads so many hooks run at once, and no more. Those that end the work have threads of their own: else they
   would wait behind all that start something, and be told after their deadline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ..model import State
from .base_partitions import HookCall, HookCalls
from .lease import Lease

if TYPE_CHECKING:
    from .coordinator import Coordinator

HELD = (State.HELD, State.JEOPARDY)

OnShard = Callable[[int, Lease], object]
OnRevoking = Callable[[int, float], object]


class ShardHooks:
    """What the user has given, and which calls have not ended. `ended` is called when one has."""

    def __init__(
        self,
        coordinator: Coordinator,
        on_assigned: OnShard | None,
        on_revoking: OnRevoking | None,
        on_lost: OnShard | None,
        ended: Callable[[], None],
    ) -> None:
        self._coordinator = coordinator
        self._on_assigned, self._on_revoking, self._on_lost = on_assigned, on_revoking, on_lost
        self._ended = ended
        self._begins, self._ends = HookCalls(), HookCalls()
        self._last: dict[int, HookCall] = {}
        self._starts: WeakKeyDictionary[Lease, HookCall] = WeakKeyDictionary()
        """The call of `on_assigned` for a lease, for as long as there is the lease."""
        self._losses: WeakKeyDictionary[Lease, HookCall] = WeakKeyDictionary()

    def busy(self) -> frozenset[int]:
        """The shards with a hook that has not ended."""
        with self._coordinator._mutex:
            self._last = {shard: call for shard, call in self._last.items() if not call.done}
            return frozenset(self._last)

    def assign(self, shard: int, lease: Lease) -> HookCall | None:
        """Have the work on a shard begun."""
        if (hook := self._on_assigned) is None:
            return None
        with self._coordinator._mutex:
            call = self._call(self._begins, shard, lambda: hook(shard, lease), lambda: lease.state in HELD)
            self._starts[lease] = call
        return call

    def revoke(self, shard: int, lease: Lease, deadline: float) -> HookCall | None:
        """Have it ended, and the checkpoint written. None: there is nothing to wait for."""
        with self._coordinator._mutex:
            start = self._starts.get(lease)
            before = None if start is None else start.after
            if start is not None and start.skip():
                if self._last.get(shard) is start and before is not None:
                    self._last[shard] = before
                return None
            if (hook := self._on_revoking) is None:
                return None
            return self._call(self._ends, shard, lambda: hook(shard, deadline), self._started(lease))

    def lose(self, shard: int, lease: Lease) -> HookCall | None:
        """Have it ended: the lease is lost."""
        if (hook := self._on_lost) is None:
            return None
        with self._coordinator._mutex:
            if (call := self._losses.get(lease)) is None:
                call = self._call(self._ends, shard, lambda: hook(shard, lease), self._started(lease))
                self._losses[lease] = call
        return call

    def _started(self, lease: Lease) -> Callable[[], bool]:
        """Whether there is something to end (rule 2)."""
        start = self._starts.get(lease)
        return lambda: start is None or not start.failed

    def _call(self, calls: HookCalls, shard: int, call: Callable[[], object], when: Callable[[], bool]) -> HookCall:
        """Rule 1. The mutex is held."""
        self._last[shard] = started = calls.start(call, self._ended, self._last.get(shard), when)
        return started
