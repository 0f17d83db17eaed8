"""The loop of one member of a partition: it looks, takes, tells the user, drains and releases, one after the other.

1. Hooks are called beside the loop, and those for one shard one after the other: see `shard_hooks`. A shard whose hook
   has not ended is not taken.
2. `on_revoking` has until its deadline. Then the shard is released, whatever it does; also if it raises. What it writes
   after that is refused by the fence.
   With asyncio it is cancelled; so is an `on_assigned` that has not ended by then. A thread goes on.
3. A shard whose `on_assigned` raises is released, and left alone for a ttl by this member: then it is tried again.
4. A shard that is being used (`Partitions.using`) is drained once it is not, or at the deadline.
5. An engine out of reach ends nothing here: what is held is lost with its ttl, and taken again afterwards.
6. A member that leaves has its shards drained, and gives up its membership meanwhile, so that the others take each
   shard as soon as it is drained.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..clock import now
from ..errors import BackendUnavailable, Misconfigured
from ..model import State
from ..observe.log_exception import log_exception
from ..recipes.partition_member import Member
from ..recipes.partition_spec import PartitionSpec
from .base_partitions import HookCall, finish, wait_first
from .lease import Lease
from .shard_hooks import HELD, OnRevoking, OnShard, ShardHooks

if TYPE_CHECKING:
    from .coordinator import Coordinator

LEAST_WAIT_S = 0.001
"""A timer may end a little early: without this the loop would turn on the spot until the time has come."""


@dataclass(slots=True)
class Drain:
    """A shard that is being given up: by when, and the hook that has been told."""

    deadline: float
    hook: HookCall | None


class MemberLoop:
    """What a member owns, and how that changes."""

    def __init__(
        self,
        coordinator: Coordinator,
        spec: PartitionSpec,
        on_assigned: OnShard | None,
        on_revoking: OnRevoking | None,
        on_lost: OnShard | None,
    ) -> None:
        self._coordinator = coordinator
        self._spec = spec
        self._member = Member(coordinator._core, spec)
        self.leases: dict[int, Lease] = {}
        """Of all shards that are owned, also of those that are being given up."""
        self.changed = asyncio.Event()
        """Set, and replaced by another, when what is owned has changed."""
        self.wake = asyncio.Event()
        self._hooks = ShardHooks(coordinator, on_assigned, on_revoking, on_lost, self.wake.set)
        self.over = asyncio.Event()
        """The member is to leave, or has left."""
        self.failure: Exception | None = None
        """What has ended it beside its user."""
        self._starts: dict[int, HookCall] = {}
        """The calls of `on_assigned` that have not ended."""
        self._drains: dict[int, Drain] = {}
        self._uses: dict[int, int] = {}

    def begin(self) -> None:
        """Start afresh."""
        core, name = self._coordinator._core, self._spec.name
        if name in core.partitions:
            raise Misconfigured(
                f"this coordinator is a member of the partition {name!r} already; connect() again for another one"
            )
        core.partitions.add(name)
        self._member = Member(core, self._spec)
        self.leases, self._starts, self._drains = {}, {}, {}  # and not the uses, which may go on
        self.failure = None
        self.over.clear()

    async def join(self) -> None:
        """Become a member, or be refused."""
        await self._coordinator._run(self._member.join(self._coordinator._actors.current(False)))

    async def work(self) -> None:
        """Serve, and leave, beside the user."""
        try:
            await self.serve(None)
        except Exception as error:
            self.failure = error
            log_exception("the member of the partition %r has ended: it owns nothing any more", self._spec.name)
            raise
        finally:
            await finish(self.leave)

    async def serve(self, stop: asyncio.Event | None) -> None:
        """Be a member until it is stopped, or its coordinator is closed: then all is released."""
        try:
            await self._serve(stop)
        except Misconfigured:
            if not self._member.core.admission.closed:
                raise

    async def _serve(self, stop: asyncio.Event | None) -> None:
        member, look_at = self._member, 0.0
        while not (self.over.is_set() or (stop is not None and stop.is_set())):
            self.wake.clear()
            if now() >= look_at:
                look_at = now() + await self._look()
            self._note()
            for shard in member.surplus(now()):
                self._revoke(shard)
            if await self._end_drains():
                look_at = now()  # whoever is below its quota takes what it can
            await self._wait(stop, look_at, member.more_at)

    async def leave(self) -> None:
        """Drain all, release, and be no member any more: others take over without waiting for a ttl."""
        member, closes = self._member, self._member.core.admission
        try:
            for shard in self.owned():  # before any request: leases end while an engine out of reach is waited for
                member.draining.add(shard)
                self._revoke(shard)
            if not closes.closed:
                await self._coordinator._run(member.withdraw())
                await self._coordinator._run(member.release([each for each in member.own if each not in self.leases]))
            while not closes.closed:
                self.wake.clear()
                await self._coordinator._run(member.drop_lost())
                self._note()
                if not await self._end_drains():
                    if not self._drains:
                        break
                    await self._wait(None, now() + member.pause)
        except Misconfigured:
            if not closes.closed:
                raise
        finally:
            member.core.partitions.discard(self._spec.name)
            for shard in list(self.leases):
                self._drop(shard)
            self.over.set()
            self._tell_changed()

    def owned(self) -> frozenset[int]:
        """What is owned and not being given up."""
        leases = self.leases.copy()
        return frozenset(shard for shard, lease in leases.items() if shard not in self._drains and lease.state in HELD)

    def count_use(self, shard: int, by: int) -> None:
        """Somebody begins or ends to use a shard. Counted before it is looked whether the shard is owned (rule 4)."""
        with self._coordinator._mutex:
            self._uses[shard] = self._uses.get(shard, 0) + by
            if not self._uses[shard]:
                del self._uses[shard]
        if by < 0:
            self.wake.set()

    async def _look(self) -> float:
        """Look and take; in how many seconds to look again."""
        member = self._member
        try:
            await self._coordinator._run(member.drop_lost())
            self._note()  # whoever has lost a shard is told before it is taken again
            member.busy = self._hooks.busy()
            return await self._coordinator._run(member.step(self._coordinator._actors.current(False)))
        except BackendUnavailable:
            return self._member.pause  # rule 5

    def _note(self) -> None:
        """Tell of what has been taken, and forget what has been lost."""
        member, changed = self._member, False
        for shard, lease in [each for each in self.leases.items() if member.own.get(each[0]) is not each[1]._hold]:
            if lease.state is State.LOST:
                self._hooks.lose(shard, lease)
            self._drop(shard)
            changed = True
        for shard, hold in member.own.items():
            if shard not in self.leases:
                self.leases[shard] = lease = Lease(self._coordinator, hold, self._lost)
                if (start := self._hooks.assign(shard, lease)) is not None:
                    self._starts[shard] = start
                changed = True
        for shard in [each for each, call in self._starts.items() if call.done]:
            if self._starts.pop(shard).failed and shard not in self._drains:  # rule 3
                member.avoided[shard] = now() + self._spec.ttl
                member.draining.add(shard)
                self._drains[shard] = Drain(0.0, None)
                changed = True
        if changed:
            self._tell_changed()

    def _revoke(self, shard: int) -> None:
        """Begin to give up a shard."""
        drain = self._drains[shard] = Drain(now() + self._spec.drain, None)  # before anybody is told
        self._tell_changed()
        drain.hook = self._hooks.revoke(shard, self.leases[shard], time.monotonic() + self._spec.drain)

    async def _wait(self, stop: asyncio.Event | None, *times: float) -> None:
        """Until something has happened, or the first of these times, or the first deadline of a drain."""
        first = min([*times, *(drain.deadline for drain in self._drains.values())])
        await wait_first(stop, self.wake, max(LEAST_WAIT_S, first - now()))

    async def _end_drains(self) -> bool:
        """Release what is drained, or overdue; whether there was any."""
        ended = [shard for shard, drain in self._drains.items() if self._drained(shard, drain)]
        if ended:
            try:
                await self._coordinator._run(self._member.release(ended))
            finally:
                for shard in ended:
                    self._drop(shard)
                self._tell_changed()
        return bool(ended)

    def _drained(self, shard: int, drain: Drain) -> bool:
        if now() >= drain.deadline:
            return True
        return (drain.hook is None or drain.hook.done) and shard not in self._uses

    def _drop(self, shard: int) -> None:
        """Forget a shard that is not owned any more."""
        self.leases.pop(shard, None)
        drain, start = self._drains.pop(shard, None), self._starts.pop(shard, None)
        for call in (start, None if drain is None else drain.hook):
            if call is not None and not call.done:
                call.abandon()

    async def _lost(self, lease: Lease) -> None:
        """The lease of a shard is lost: called beside the keeper."""
        self.wake.set()
        self._tell_changed()
        if (call := self._hooks.lose(int(lease.name.rpartition("/")[2]), lease)) is not None:
            await call.wait()

    def _tell_changed(self) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()
