"""The client: each request, and each waiter, on a connection of its own; takes and releases together where many come.

1. Nothing is sent before a connection is open: failing that is `BackendUnavailable`. After sending, whatever goes wrong
   is `OutcomeUnknown`, except for an error reply, which means that nothing was done. A request's deadline bounds all of
   it, the opening of a connection among it.
2. A claim that queues can be reached: its connection listens, and is kept for its owner to wait on. Where it does not
   (an old server or proxy, a cluster, many waiters), the first one that would have to wait subscribes for all, and then
   queues.
3. A connection that was idle may have been ended by the server, unnoticed. A request that finds it so is made again,
   once, on a new one: every verb may be carried out twice, but for a limiter's; that one looks at the connection first.
4. Where replicas have to confirm (`Durability`), WAIT goes out behind the write on the same connection; a grant that
   was pushed is taken again, because its own write was somebody else's.
5. Short cuts are for one primary without `Durability`. What they cannot do goes on here, in the general way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._core.flow import NEW_EVENT, NOW, Flow, Sleep, WakeEvent
from ...errors import BackendUnavailable, Misconfigured
from ...model import Claim, LockView
from ..queue_backend import UNKNOWN, Allow, Push, QueueReply, QueueRequest, Release, Renew, Survey, Take, Taken
from ..record_requests import ListRecords, ReadRecord, SwapRecord, TouchRecords
from .address import RedisAddress
from .batching import BUSY_COUNT
from .codec import NOT_YET_HEARING, NOWHERE, Codec, Order, channels_of, write
from .connector import Connector
from .durability import NotConfirmed
from .notifications import POLL_S, Listener
from .pool import RedisPool
from .program_calls import ProgramCalls
from .record_codec import RecordCodec
from .record_short_cuts import SwapShortCut
from .records import RedisRecords
from .renew import ClusterCalls
from .replies import waits
from .servers import Cluster, Primary, Servers
from .short_cuts import RedisShortCuts, is_usual
from .survey import survey
from .topology import Topology
from .waiter_connections import WaiterConnections


class RedisClient:
    """The client of one coordinator. `identity` gives the host and the process, anew after a fork."""

    def __init__(
        self, address: RedisAddress, namespace: str, request_timeout: float, identity: Callable[[], tuple[str, int]]
    ) -> None:
        self._address, self._namespace, self._timeout = address, namespace, request_timeout
        self._identity = identity
        self._durability = address.durability
        self._cheap = False
        """Another flow is woken without another thread."""
        self._begin()

    def _begin(self) -> None:
        self._begin_queues()
        records = RecordCodec(self._namespace, self._codec.chosen, clustered=bool(self._address.seeds))
        self._records = RedisRecords(records, self.calls, self.servers, self._durability, bool(self._address.seeds))
        if self.short_cuts is not None and isinstance(self.servers, Primary):
            self.short_cuts.swap = SwapShortCut(self.servers.pool, records, self._records)

    def _begin_queues(self) -> None:
        address = self._address
        alone = not address.seeds
        host, pid = self._identity()
        self._codec = Codec(self._namespace, host, pid, indexed=alone)
        self._connector = connector = Connector(channels_of(self._namespace))
        self._waiters: WaiterConnections | None = None
        self.short_cuts: RedisShortCuts | None = None
        """See rule 5."""
        if alone:
            primary = Primary(address.primary, connector, listen=self._durability is None)
            self.servers: Servers = primary
            self.calls = ProgramCalls(primary, self._codec, self._durability)
            self._listener = Listener(
                lambda deadline: connector.connect(address.primary, deadline),
                connector.new_channel,
                address.primary.place,
            )
            if self._durability is None:
                self._waiters = WaiterConnections(primary.pool)
                self.short_cuts = RedisShortCuts(primary.pool, self._codec, self._listener, self._waiters, self)
                self.short_cuts.batching.busy_count = BUSY_COUNT[self._cheap]
            return
        topology = Topology(address.seeds, connector, self._timeout)

        def new_channel() -> Flow[str]:
            # In a cluster the node that publishes does not know who listens at another: see `reached` in line.lua.
            return (yield from connector.new_channel()) + "*"

        self._listener = Listener(topology.connect_anywhere, new_channel, "any node of the cluster")
        topology.on_suspect = lambda node: self._listener.hang_up() if node == topology.listening_at else None
        self.servers = Cluster(topology, connector)
        self.calls = ProgramCalls(self.servers, self._codec, self._durability)

    def prepare(self, flags: bool) -> Flow[None]:
        """`flags`: the server can read the first line of programs that have one (see `programs`)."""
        event: WakeEvent = yield NEW_EVENT
        self._cheap = bool(getattr(event, "cheap", False))
        if self.short_cuts is not None:
            self.short_cuts.batching.busy_count = BUSY_COUNT[self._cheap]
        if not flags:
            self._codec.do_without_flags()

    def call(self, request: QueueRequest, deadline: float) -> Flow[QueueReply]:
        if self.short_cuts is not None and is_usual(request):
            return self.short_cuts.call(request, deadline)
        return self._call(request, deadline)

    def forget(self, owner: str) -> None:
        """This owner waits no longer."""
        if self._waiters is not None and self._waiters.by_owner:
            self._waiters.forget(owner)
        if self._listener.ready:
            self._listener.forget(owner)

    # The general way

    def _call(self, request: QueueRequest, deadline: float) -> Flow[QueueReply]:
        match request:
            case Take():
                return (yield from self.take(request, deadline))
            case Survey():
                return (yield from self._survey(request, deadline))
            case Renew() if self._address.seeds:
                orders = [self._codec.renew([claim]) for claim in request.claims]
                renewal = ClusterCalls(orders, self.servers, self._durability, self._renew_one)
                said: list[str | None] = yield from renewal.run(deadline)
                return [UNKNOWN if one is None else one for one in said]
            case Release(claim=claim, linger=linger):
                return (yield from self.release(claim, linger, deadline))
            case ReadRecord() | SwapRecord() | TouchRecords() | ListRecords():
                return (yield from self._records.call(request, deadline))
        order = write(self._codec, request, NOWHERE)
        confirmed, repeatable = isinstance(request, Renew), not isinstance(request, Allow)
        answer: QueueReply = yield from self.calls.run(order, deadline, confirmed=confirmed, repeatable=repeatable)
        return answer

    def take(self, request: Take, deadline: float) -> Flow[list[Taken]]:
        wake = self._listener.channel if self._listener.ready else NOT_YET_HEARING
        try:
            taken: list[Taken] = yield from self.calls.run(write(self._codec, request, wake), deadline, confirmed=True)
            return (yield from self.make_reachable(request, deadline, wake, taken))
        except NotConfirmed:
            for claim in request.claims:
                yield from self.calls.run(self._codec.release(claim, 0.0), deadline)
            raise

    def make_reachable(self, request: Take, deadline: float, wake: str, taken: list[Taken]) -> Flow[list[Taken]]:
        """Whoever has to wait subscribes before it queues, so that nobody waits whom no push can reach."""
        if wake is NOT_YET_HEARING and request.queue and any(map(waits, taken)):
            wake = self._listener.channel if (yield from self._listener.open(deadline)) else NOWHERE
            taken = yield from self.calls.run(write(self._codec, request, wake), deadline, confirmed=True)
        return taken

    def release(self, claim: Claim, linger: float, deadline: float, again: bool = False) -> Flow[bool]:
        self.forget(claim.owner)
        order = self._codec.release(claim, linger)
        if again:
            order = order._replace(read=order.read_again)
        return bool((yield from self.calls.run(order, deadline)))

    def _renew_one(self, order: Order, deadline: float) -> Flow[str | None]:
        try:
            said: list[str] = yield from self.calls.run(order, deadline, confirmed=True)
        except (BackendUnavailable, Misconfigured):
            return None
        return said[0]

    def _survey(self, request: Survey, deadline: float) -> Flow[list[LockView]]:
        """Each of its steps has the time that a request has: there may be many of them."""
        now: float = yield NOW
        step_s = deadline - now

        def run(order: Order) -> Flow[Any]:
            now: float = yield NOW
            return (yield from self.calls.run(order, now + step_s))

        def command_at(pool: RedisPool, frame: bytes) -> Flow[Any]:
            now: float = yield NOW
            return (yield from self.calls.command(pool, frame, now + step_s))

        pools = yield from self.servers.every(deadline)
        together = not self._address.seeds
        return (yield from survey(self._codec, request, pools, together, run, command_at))

    def wait(self, owner: str, deadline: float) -> Flow[Push | None]:
        if self._waiters is not None and (link := self._waiters.by_owner.get(owner)) is not None:
            return (yield from self._waiters.wait(owner, link, deadline))
        if not self._listener.ready:
            now: float = yield NOW
            yield Sleep(max(0.0, min(deadline - now, POLL_S)))
            return None
        push = yield from self._listener.wait(owner, deadline)
        return push if self._durability is None else None

    def close(self, deadline: float) -> Flow[None]:
        yield from ()
        self._listener.close()
        self.servers.close()
        self._connector.close()

    def after_fork_in_child(self) -> None:
        self._connector.abandon()
        self._begin()
