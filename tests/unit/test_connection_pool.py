"""A bounded pool of connections: who finds none free waits its turn, and a server that failed holds no place."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from holdfast._core.flow import NOW, Connection, Flow
from holdfast.backends.connections.pool import ConnectionPool, PoolExhausted
from holdfast.clock import now
from holdfast.errors import Misconfigured
from holdfast.sync.client_driver import Monitor

LIMIT_COUNT = 2
LONG_S = 20.0


class FakeConnection:
    def __init__(self) -> None:
        self.closed = False

    def read(self) -> bytes | None:
        return None

    def readable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True

    def write(self, data: bytes) -> bool:
        return True

    abandon = close


class FakePooled:
    def __init__(self) -> None:
        self.connection: Connection = FakeConnection()


class Bench:
    """A pool, and threads that take from it."""

    def __init__(self) -> None:
        self.monitor = Monitor()
        self.fails = False
        self.pool: ConnectionPool[FakePooled] = ConnectionPool(self._connect, LIMIT_COUNT)
        self.taken: list[tuple[int, FakePooled]] = []
        self.threads: list[threading.Thread] = []

    def _connect(self, deadline: float) -> Flow[FakePooled]:
        yield NOW
        if self.fails:
            raise ConnectionRefusedError("nobody listens")
        return FakePooled()

    def take(self, patience_s: float = LONG_S) -> FakePooled:
        return self.monitor.run(self.pool.take(now() + patience_s))

    def take_beside(self, number: int) -> None:
        def run() -> None:
            self.taken.append((number, self.take()))

        before = len(self.pool._waiters)
        self.threads.append(threading.Thread(target=run, daemon=True))
        self.threads[-1].start()
        while len(self.pool._waiters) == before and self.threads[-1].is_alive():
            pass

    def join(self) -> None:
        for thread in self.threads:
            thread.join(LONG_S)
            assert not thread.is_alive()


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.pool.close()


def test_who_finds_none_free_waits_in_the_order_of_coming(bench: Bench) -> None:
    held = [bench.take() for _ in range(LIMIT_COUNT)]
    for number in range(2):
        bench.take_beside(number)
    assert not bench.taken
    bench.pool.put(held[0])
    bench.threads[0].join(LONG_S)
    assert bench.taken == [(0, held[0])]
    bench.pool.drop(held[1])
    bench.join()
    assert [number for number, _ in bench.taken] == [0, 1]
    assert bench.taken[1][1] is not held[1]


def test_who_waits_in_vain_is_told_at_its_deadline(bench: Bench) -> None:
    held = [bench.take() for _ in range(LIMIT_COUNT)]
    with pytest.raises(PoolExhausted):
        bench.take(0.01)
    assert not bench.pool._waiters
    bench.pool.put(held[0])
    assert bench.take() is held[0]


def test_what_hangs_at_a_failed_server_holds_no_place(bench: Bench) -> None:
    held = [bench.take() for _ in range(LIMIT_COUNT)]
    bench.take_beside(0)
    bench.pool.replace_all()
    bench.join()
    assert bench.taken[0][1] not in held
    bench.pool.put(held[0])
    assert held[0].connection.closed


def test_a_connection_that_could_not_be_made_holds_no_place(bench: Bench) -> None:
    bench.fails = True
    for _ in range(LIMIT_COUNT + 1):
        with pytest.raises(ConnectionRefusedError):
            bench.take()
    bench.fails = False
    assert not bench.take().connection.closed


def test_who_waits_is_told_when_the_pool_is_closed(bench: Bench) -> None:
    held = [bench.take() for _ in range(LIMIT_COUNT)]
    failures: list[BaseException] = []

    def run() -> None:
        try:
            bench.take()
        except Misconfigured as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while not bench.pool._waiters:
        pass
    bench.monitor.run(_close(bench.pool))
    thread.join(LONG_S)
    assert "closed" in str(failures[0])
    assert all(each.connection.closed for each in held)


def _close(pool: ConnectionPool[FakePooled]) -> Flow[None]:
    yield NOW
    pool.close()


def test_a_connection_that_nobody_has_any_more_holds_no_place(bench: Bench) -> None:
    """Its flow was interrupted after the pool had given it out, and before it could give it back."""
    for _ in range(2 * LIMIT_COUNT):
        bench.take(patience_s=0.0)
        gc.collect()
