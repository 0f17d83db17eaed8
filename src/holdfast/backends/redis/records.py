"""Records on Redis (`holdfast.record`): what is sent for each request.

1. A swap is never sent twice: the second one would be refused by what the first has written. If its reply is lost that
   is `OutcomeUnknown`, and whoever asked looks what is there. All else may be repeated.
2. Where replicas have to confirm (`Durability`), a record counts once they have it: not only for who writes it, but
   also for who finds it: WAIT behind a read asks for all that was written before it, whoever wrote it. A swap that too
   few confirm was carried out nevertheless: `OutcomeUnknown`.
3. On a cluster many records are touched, listed and read with one write for each node (`ClusterCalls`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..._core.flow import NOW, Flow
from ...errors import BackendUnavailable, Misconfigured, OutcomeUnknown
from ...record import Record, Swapped
from ..record_requests import ListRecords, ReadRecord, RecordReply, RecordRequest, SwapRecord, Touch, TouchRecords
from .codec import Order
from .durability import Durability, NotConfirmed
from .program_calls import ProgramCalls
from .record_codec import Listed, RecordCodec
from .renew import ClusterCalls
from .resp import Reply
from .servers import Servers

READ_COUNT = 100
"""So many records are read in one call."""


class RedisRecords:
    """The records of one client."""

    def __init__(
        self, codec: RecordCodec, calls: ProgramCalls, servers: Servers, durability: Durability | None, clustered: bool
    ) -> None:
        self._codec, self._calls, self._servers = codec, calls, servers
        self._durability, self._clustered = durability, clustered

    def call(self, request: RecordRequest, deadline: float) -> Flow[RecordReply]:
        match request:
            case ReadRecord(key=key):
                return (yield from self._read(key, deadline))
            case SwapRecord():
                return (yield from self._swap(request, deadline))
            case TouchRecords(touches=touches):
                return (yield from self._touch(touches, deadline))
            case ListRecords():
                return (yield from self._list(request, deadline))

    def _read(self, key: str, deadline: float) -> Flow[Record | None]:
        found: list[Record | None] = yield from self._calls.run(self._codec.read([key]), deadline, confirmed=True)
        return found[0]

    def _swap(self, request: SwapRecord, deadline: float) -> Flow[Swapped]:
        order = self._codec.swap(request)
        try:
            swapped: Swapped = yield from self._calls.run(order, deadline, confirmed=True, repeatable=False)
        except NotConfirmed as error:
            raise OutcomeUnknown(f"the record {request.key!r} may be lost: {error}") from error
        return swapped

    def _touch(self, touches: Sequence[Touch], deadline: float) -> Flow[list[bool | None]]:
        if not self._clustered:
            touched: list[bool | None] = yield from self._calls.run(
                self._codec.touch(touches), deadline, confirmed=True
            )
            return touched
        orders = [self._codec.touch([touch]) for touch in touches]
        answers = yield from self._together(orders, deadline, self._durability)
        return [said if isinstance(said, bool) else None for said in answers]

    def _list(self, request: ListRecords, deadline: float) -> Flow[list[Record]]:
        """Each of its steps has the time that a request has: there may be many of them."""
        now: float = yield NOW
        step_s = deadline - now
        found: list[Record] = []
        after = request.after
        while len(found) < request.limit:
            orders = [self._codec.list(bucket, request, after) for bucket in self._codec.buckets]
            listed = [each for each in (yield from self._all(orders, step_s)) if isinstance(each, Listed)]
            bound = min((each.up_to for each in listed if each.up_to is not None), default=None)
            keys = sorted(key for each in listed for key in each.keys if bound is None or key <= bound)
            chosen = keys[: min(READ_COUNT, request.limit - len(found))]
            if chosen:
                found += yield from self._read_all(chosen, step_s)
            if len(chosen) < len(keys):
                after = chosen[-1]
            elif bound is None:
                break
            else:
                after = bound
        return found

    def _read_all(self, keys: Sequence[str], step_s: float) -> Flow[list[Record]]:
        each = [[key] for key in keys] if self._clustered else [keys]
        found = yield from self._all([self._codec.read(some) for some in each], step_s)
        return [record for record in found if isinstance(record, Record)]

    def _all(self, orders: Sequence[Order], step_s: float) -> Flow[list[object]]:
        """What is answered to all of them, or an error."""
        now: float = yield NOW
        if not self._clustered:
            [order] = orders
            answer: list[object] = yield from self._calls.run(order, now + step_s)
            return answer
        answers = yield from self._together([order._replace(read=_boxed(order)) for order in orders], now + step_s)
        if None in answers:
            raise BackendUnavailable("a node of the Redis cluster did not answer; try again")
        return [answer[0] for answer in answers if isinstance(answer, list)]

    def _together(
        self, orders: Sequence[Order], deadline: float, durability: Durability | None = None
    ) -> Flow[list[object]]:
        """On a cluster. None: nobody could tell."""
        calls: ClusterCalls[object] = ClusterCalls(orders, self._servers, durability, self._alone)
        return (yield from calls.run(deadline))

    def _alone(self, order: Order, deadline: float) -> Flow[object]:
        try:
            said: list[object] = yield from self._calls.run(order, deadline, confirmed=True)
        except (BackendUnavailable, Misconfigured):
            return None
        return said[0]


def _boxed(order: Order) -> Callable[[Reply], list[object]]:
    """How to read a reply so that "there is none" is not taken for "nobody could tell"."""
    return lambda reply: [order.read(reply)]
