"""A partition for tasks: its shards, who owns them, and the member that this coordinator is."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from .._core.lease import NEVER
from .._core.pickling import unpicklable
from ..clock import now
from ..errors import NotAcquired
from ..model import ClaimView
from ..recipes.election import check_stop
from ..recipes.options import check_hook
from ..recipes.partition_member import read_members, read_owner
from ..recipes.partition_spec import MemberView, PartitionSpec
from .base_partitions import Background, finish, wait_event
from .lease import Lease
from .member_loop import MemberLoop
from .shard_hooks import OnRevoking, OnShard

if TYPE_CHECKING:
    from .coordinator import Coordinator


class Partitions:
    """Shards that the members of a partition own, each by one of them at a time. Iterate over it for those owned here.

    >>> import asyncio, holdfast.aio
    >>> async def main() -> list[int]:
    ...     async with holdfast.aio.connect("memory://doc") as locks:
    ...         async with locks.partitions("ingest", shards=4) as partitions:
    ...             owned = await partitions.wait_for_change()
    ...             return sorted(owned)
    >>> asyncio.run(main())
    [0, 1, 2, 3]
    """

    __reduce__ = unpicklable("connect() there, and make the partition there")

    def __init__(
        self,
        coordinator: Coordinator,
        spec: PartitionSpec,
        on_assigned: OnShard | None,
        on_revoking: OnRevoking | None,
        on_lost: OnShard | None,
    ) -> None:
        for what, hook in (("on_assigned", on_assigned), ("on_revoking", on_revoking), ("on_lost", on_lost)):
            check_hook(what, hook, spec.name, awaits=True)
        self._coordinator = coordinator
        self._spec = spec
        self._loop = MemberLoop(coordinator, spec, on_assigned, on_revoking, on_lost)
        self._background: Background | None = None

    # What anybody may ask

    @property
    def name(self) -> str:
        """What is partitioned."""
        return self._spec.name

    @property
    def shards(self) -> int:
        """How many shards there are."""
        return self._spec.shards

    def shard(self, key: str | bytes) -> int:
        """The shard of a key: BLAKE2b of 8 bytes of its UTF-8, big-endian, modulo the shards; the same everywhere."""
        return self._spec.shard_of(key)

    async def owner(self, key: str | bytes) -> ClaimView | None:
        """Who owns the shard of a key at this moment, in whichever process; None while nobody does."""
        return await self._coordinator._run(
            read_owner(self._coordinator._core.backend, self._spec, self._spec.shard_of(key))
        )

    async def members(self) -> tuple[MemberView, ...]:
        """The live members, in whichever process."""
        return await self._coordinator._run(read_members(self._coordinator._core.backend, self._spec))

    # What this member owns

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._loop.owned()))

    def __len__(self) -> int:
        return len(self._loop.owned())

    def __contains__(self, shard: object) -> bool:
        return shard in self._loop.owned()

    def __getitem__(self, shard: int) -> Lease:
        """The lease of a shard that is owned here, or being given up: for the fence. `KeyError` for any other."""
        return self._loop.leases[shard]

    @contextmanager
    def using(self, shard: int) -> Iterator[Lease]:
        """Work on a shard that is owned here: it is not handed over before the end, or the deadline of a drain."""
        loop = self._loop
        loop.count_use(shard, 1)
        try:
            lease = loop.leases.get(shard)
            if lease is None or shard not in loop.owned():
                raise NotAcquired(
                    f"{self.name}, shard {shard}", 0.0, advice="this member does not own it (any more): leave it alone"
                )
            yield lease
        finally:
            loop.count_use(shard, -1)

    async def wait_for_change(self, known: Collection[int] = (), timeout: float | None = None) -> frozenset[int]:
        """The shards owned here, once they are others than `known`, or the time is over."""
        loop, end = self._loop, NEVER if timeout is None else now() + timeout
        while True:
            changed = loop.changed
            if loop.failure is not None:
                raise loop.failure
            if (owned := loop.owned()) != frozenset(known) or loop.over.is_set() or (left := end - now()) <= 0:
                return owned
            await wait_event(changed, None if timeout is None else left)

    # Being a member

    async def run(self, stop: asyncio.Event | None = None) -> None:
        """Be a member until `stop` is set; then drain, release and leave."""
        check_stop(stop, f"the partition {self.name!r}", awaits=True)
        loop = self._loop
        loop.begin()
        try:
            await loop.join()
            await loop.serve(stop)
        finally:
            await finish(loop.leave)

    async def __aenter__(self) -> Partitions:
        loop = self._loop
        loop.begin()
        try:
            await loop.join()
            self._background = Background(loop.work, f"holdfast-partition-{self.name}")
        except BaseException:
            await finish(loop.leave)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        background, self._background = self._background, None
        self._loop.over.set()
        self._loop.wake.set()
        if background is not None:
            await background.join()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {len(self)} of {self.shards} shards>"
