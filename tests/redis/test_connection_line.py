"""Who finds all connections to a Redis busy stands in a line for them."""

from __future__ import annotations

from typing import Any, cast

from holdfast._core.flow import Flow, Now, WaitEvent
from holdfast.backends.redis.connection import RedisConnection
from holdfast.backends.redis.pool import RedisPool, Waiter


class Event:
    """One that nobody waits for: the flows are run by hand."""

    cheap = True

    def set(self) -> None: ...


def dial(deadline: float) -> Flow[RedisConnection]:
    raise AssertionError("nobody needs another one")


def begun(flow: Flow[Any]) -> Flow[Any]:
    assert isinstance(next(flow), Now)
    assert isinstance(flow.send(0.0), WaitEvent)
    return flow


def test_a_connection_goes_to_the_first_who_has_not_given_up() -> None:
    pool = RedisPool(dial, "nowhere")
    waiters = [Waiter(Event(), 100.0) for _ in range(4)]
    flows = [begun(pool.wait_in_line(waiter)) for waiter in waiters]
    flows[1].close()
    links = [cast(RedisConnection, object()) for _ in range(3)]
    for link in links:
        pool.put(link)
    assert [waiter.connection for waiter in waiters] == [links[0], None, links[1], links[2]]
    assert not pool.line
    assert not pool.idle
