"""Many calls on a cluster, renewals mostly: those for one node leave in one write; their replies are read together.

1. Each node is asked beside the others: one that hangs, or has to be dialled, keeps nobody waiting.
2. A node that does not answer in time costs only the calls that went to it. The others wait for it once; from then
   on, until it answers again, they wait a moment (`GRACE_S`) at most: it is asked by itself when its own leases are
   tried again, and has all the time then.
3. A call that was answered with an error (a program that the node does not know, a slot that has moved) is made
   again by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ..._core.flow import NEW_EVENT, NOW, Flow, Spawn, WaitEvent, WakeEvent
from ...errors import BackendUnavailable, Misconfigured
from .codec import Order
from .durability import Durability
from .pool import RedisPool
from .resp import Error, Reply
from .servers import Servers

GRACE_S = 0.1
T = TypeVar("T")


class ClusterCalls(Generic[T]):
    """One round of calls that may be repeated, each of which answers a list of one."""

    def __init__(
        self,
        orders: Sequence[Order],
        servers: Servers,
        durability: Durability | None,
        alone: Callable[[Order, float], Flow[T | None]],
    ) -> None:
        self._orders = orders
        self._servers = servers
        self._durability = durability
        self._alone = alone
        self._answers: list[T | None] = [None] * len(orders)
        self._under_way: set[RedisPool] = set()

    def run(self, deadline: float) -> Flow[list[T | None]]:
        """For each what was said, None where nobody could tell."""
        by_pool: dict[RedisPool, list[int]] = {}
        for number, order in enumerate(self._orders):
            pool = yield from self._servers.having(order.key, deadline)
            by_pool.setdefault(pool, []).append(number)
        if len(by_pool) == 1:
            [(pool, numbers)] = by_pool.items()
            yield from self._ask(pool, numbers, deadline)
            return self._answers
        ended: WakeEvent = yield NEW_EVENT
        ailing = {pool for pool in by_pool if pool.ailing}
        self._under_way = set(by_pool)
        for pool, numbers in by_pool.items():
            if (yield Spawn(self._ask_beside(pool, numbers, deadline, ended))) is False:
                self._under_way.discard(pool)
        yield from self._wait(ended, set(by_pool) - ailing, deadline)
        if len(ailing) < len(by_pool):
            now: float = yield NOW
            deadline = min(deadline, now + GRACE_S)
        yield from self._wait(ended, ailing, deadline)
        return list(self._answers)  # what comes later is too late

    def _wait(self, ended: WakeEvent, pools: set[RedisPool], deadline: float) -> Flow[None]:
        while pools & self._under_way:
            now: float = yield NOW
            if now >= deadline:
                return
            yield WaitEvent(ended, deadline - now)

    def _ask_beside(self, pool: RedisPool, numbers: Sequence[int], deadline: float, ended: WakeEvent) -> Flow[None]:
        try:
            yield from self._ask(pool, numbers, deadline)
        finally:
            self._under_way.discard(pool)
            ended.set()

    def _ask(self, pool: RedisPool, numbers: Sequence[int], deadline: float) -> Flow[None]:
        try:
            replies = yield from self._exchange(pool, [self._orders[number] for number in numbers], deadline)
        except (BackendUnavailable, Misconfigured, OSError):
            pool.ailing = True
            yield from self._servers.failed(pool)
            return
        pool.ailing = False
        for number, reply in zip(numbers, replies, strict=True):
            if isinstance(reply, Error):
                self._answers[number] = yield from self._alone(self._orders[number], deadline)
            else:
                self._answers[number] = self._orders[number].read(reply)[0]

    def _exchange(self, pool: RedisPool, orders: Sequence[Order], deadline: float) -> Flow[list[Reply]]:
        link = yield from pool.take(deadline)
        try:
            frames = [order.program.call(order.size) + order.words for order in orders]
            if self._durability is not None:
                now: float = yield NOW
                frames.append(self._durability.frame(deadline - now))
            replies = yield from link.exchange_all(frames, deadline)
            if self._durability is not None:
                self._durability.check(replies.pop(), replies[0])
        except BaseException:
            pool.drop(link)
            raise
        pool.put(link)
        return replies
