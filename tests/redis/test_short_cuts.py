"""Short cuts decide as the general way does: the same replies, the same errors, the same connections afterwards."""

from __future__ import annotations

import asyncio
from binascii import crc32
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast
from weakref import WeakSet

import pytest

import holdfast.aio
from holdfast._core.flow import Flow
from holdfast.aio.client_wire import AsyncClientWire
from holdfast.aio.connection import TaskConnection
from holdfast.backends.queue_backend import Release, Take
from holdfast.backends.record_requests import SwapRecord
from holdfast.backends.redis.address import of_url
from holdfast.backends.redis.batching import BUSY_COUNT
from holdfast.backends.redis.client import RedisClient
from holdfast.backends.redis.codec import Codec, write
from holdfast.backends.redis.connection import RedisConnection
from holdfast.backends.redis.record_codec import RecordCodec
from holdfast.backends.redis.resp import bulks
from holdfast.backends.redis.servers import Primary
from holdfast.errors import Misconfigured
from holdfast.model import Claim, LockSpec
from holdfast.record import Record, Swapped
from holdfast.sync.client_driver import Monitor
from holdfast.sync.client_wire import ClientWire
from holdfast.sync.connection import ThreadConnection
from tests.redis.faces import run
from tests.redis.proxy import Proxy, proxied
from tests.support.redis_server import RedisServer

SILENCE, END = "silence", "end"
Said = bytes | str | list[bytes]
GRANTED = b"$16\r\n1794739688509276\r\n"
CLAIM = Claim(LockSpec("orders/7"), "owner-1", "~actor.1")
TAKE, TRY, RELEASE = Take((CLAIM,), True), Take((CLAIM,), False), Release(CLAIM, 0.0)
SWAP, DELETE = SwapRecord("k", 0, b"{}", "owner-1", 30.0, 60.0), SwapRecord("k", 7, None, "owner-1", 0.0, 60.0)
SWAPPED = b"*2\r\n:1\r\n:1794739688509276\r\n"
IN_THE_WAY = b"*2\r\n:0\r\n*4\r\n:1794739688509270\r\n$7\r\nowner-2\r\n$4\r\n{\r\n}\r\n:5000000\r\n"
PUSH = b">3\r\n$7\r\nmessage\r\n$2\r\nmy\r\n$24\r\nanother 1794739688509270\r\n"
MOVED = b"-READONLY You can't write against a read only replica.\r\n"

SCRIPTS: dict[str, tuple[Take | Release | SwapRecord, list[Said]]] = {
    "granted": (TAKE, [GRANTED]),
    "granted a single try": (TRY, [GRANTED]),
    "not free for a single try": (TRY, [b":0\r\n"]),
    "another capacity": (TAKE, [b":-3\r\n"]),
    "queued": (TAKE, [b"*3\r\n:5000000\r\n:1\r\n:1794739688509270\r\n"]),
    "granted in pieces": (TAKE, [[GRANTED[:7], GRANTED[7:]]]),
    "a push before the grant": (TAKE, [[PUSH + GRANTED]]),
    "a program that is not known": (TAKE, [b"-NOSCRIPT No matching script.\r\n", b"-NOSCRIPT no\r\n", GRANTED]),
    "a take that is refused": (TAKE, [b"-NOPERM no\r\n", b"-NOPERM no\r\n"]),
    "another primary": (TAKE, [MOVED, MOVED, GRANTED]),
    "ended, then granted": (TAKE, [END, GRANTED]),
    "ended twice": (TAKE, [END, END, END]),
    "no answer to a take": (TAKE, [SILENCE]),
    "half an answer to a take": (TAKE, [[GRANTED[:7]]]),
    "not Redis": (TAKE, [b"HTTP/1.1 400 Bad Request\r\n\r\n"]),
    "released": (RELEASE, [b":1\r\n"]),
    "released before": (RELEASE, [b":0\r\n"]),
    "ended, then released before": (RELEASE, [END, b":0\r\n"]),
    "a release that is refused": (RELEASE, [b"-OOM no\r\n", b"-OOM no\r\n"]),
    "no answer to a release": (RELEASE, [SILENCE]),
    "a release in pieces": (RELEASE, [[b":", b"1\r\n"]]),
    "swapped": (SWAP, [SWAPPED]),
    "swapped in pieces": (SWAP, [[SWAPPED[:9], SWAPPED[9:]]]),
    "swapped, behind a push": (SWAP, [[PUSH + SWAPPED]]),
    "a push, then swapped": (SWAP, [[PUSH, SWAPPED]]),
    "another record is in the way": (SWAP, [IN_THE_WAY]),
    "another record, in pieces": (SWAP, [[IN_THE_WAY[:30], IN_THE_WAY[30:60], IN_THE_WAY[60:]]]),
    "nothing is there to be swapped": (SWAP, [b"*2\r\n:0\r\n$-1\r\n"]),
    "deleted": (DELETE, [b"*1\r\n:1\r\n"]),
    "a swap that is not known": (SWAP, [b"-NOSCRIPT No matching script.\r\n", b"-NOSCRIPT no\r\n", SWAPPED]),
    "a swap that is refused": (SWAP, [b"-NOPERM no\r\n", b"-NOPERM no\r\n"]),
    "a swap at a full server": (SWAP, [b"-OOM no\r\n", b"-OOM no\r\n"]),
    "a swap at a replica": (SWAP, [MOVED, MOVED, SWAPPED]),
    "a swap whose connection ends": (SWAP, [END, SWAPPED]),
    "no answer to a swap": (SWAP, [SILENCE, SWAPPED]),
    "half an answer to a swap": (SWAP, [[SWAPPED[:9]]]),
    "a swap, not Redis": (SWAP, [b"HTTP/1.1 400 Bad Request\r\n\r\n"]),
}


class Script:
    """What the server says to each request, whichever connection it comes on."""

    def __init__(self, said: list[Said]) -> None:
        self._said = iter(said)

    def next(self) -> list[bytes | str]:
        said = next(self._said)
        return list(said) if isinstance(said, list) else [said]


class BlockingScript(ThreadConnection):
    """A connection of threads."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._due: list[bytes | str] = []
        self.closed = False

    def exchange(self, data: bytes, deadline: float) -> bytes:
        self._due += self._script.next()
        return self.receive(deadline)

    def receive(self, deadline: float) -> bytes:
        said = self._due.pop(0) if self._due else SILENCE
        if isinstance(said, bytes):
            return said
        if said is SILENCE:
            raise TimeoutError("no answer in time")
        return b""

    def readable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


class Transport:
    """Answers what is written, at the loop's next turns."""

    def __init__(self, script: Script, connection: TaskConnection) -> None:
        self._script, self._connection = script, connection

    def write(self, data: bytes) -> None:
        for said in self._script.next():
            asyncio.get_running_loop().call_soon(self._say, said)

    def _say(self, said: bytes | str) -> None:
        if isinstance(said, bytes):
            self._connection.get_buffer(-1)[: len(said)] = said
            self._connection.buffer_updated(len(said))
        elif said is END:
            self._connection.eof_received()

    def abort(self) -> None: ...


def new_client(connection: Callable[[], Any]) -> RedisClient:
    client = RedisClient(of_url("redis://127.0.0.1:1", 5.0), "holdfast", 5.0, lambda: ("host", 7))
    pool = cast(Primary, client.servers).pool

    def connect(deadline: float) -> Flow[RedisConnection]:
        yield from ()
        link = RedisConnection(connection(), WeakSet())
        link.listens_on("mine")
        return link

    pool._connect = connect
    for link in [Monitor().run(connect(0.0))]:
        pool.count += 1
        pool.put(link)
    return client


def outcome(client: RedisClient, call: Callable[[], Any]) -> tuple[object, ...]:
    """The reply or the error, and what became of the connections and of who waits."""
    try:
        said: object = call()
    except Exception as error:  # noqa: BLE001  it is what the test wants to see
        said = type(error), str(error), type(error.__cause__)
    pool = cast(Primary, client.servers).pool
    waiting = client._waiters is not None and list(client._waiters.by_owner)
    return said, pool.count, len(pool.idle), waiting


def by_thread(said: list[Said], request: Any, short: bool) -> tuple[object, ...]:
    script = Script(said)
    client = new_client(lambda: BlockingScript(script))
    wire = ClientWire(client, Monitor())
    if not short:
        wire._short_cuts = None
    return outcome(client, lambda: wire.call(request, 0.3))


def by_task(said: list[Said], request: Any, short: bool) -> tuple[object, ...]:
    script = Script(said)

    def connection() -> TaskConnection:
        made = TaskConnection(asyncio.get_running_loop())
        made._transport = cast(asyncio.Transport, Transport(script, made))
        return made

    async def main() -> tuple[object, ...]:
        client = new_client(connection)
        wire = AsyncClientWire(client)
        if not short:
            wire._short_cuts = None
        answer: Any = None
        try:
            answer = await wire.call(request, 0.3)
        except Exception as error:  # noqa: BLE001  told by `outcome`
            answer = error

        def again() -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        return outcome(client, again)

    async def soon() -> tuple[object, ...]:
        return await asyncio.wait_for(main(), 30)

    return asyncio.run(soon())


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_short_cut_decides_as_its_flow_does(name: str) -> None:
    request, said = SCRIPTS[name]
    expected = by_thread(said, request, short=False)
    assert by_thread(said, request, short=True) == expected
    assert by_task(said, request, short=False) == expected
    assert by_task(said, request, short=True) == expected


GENERAL = [name for name in SCRIPTS if "queued" not in name]
"""Who queues is reached in another way there: by the listener of all."""
FEWER = {
    "a program that is not known": 1,
    "a take that is refused": 1,
    "another primary": 1,
    "a release that is refused": 1,
    "a swap that is not known": 1,
    "a swap that is refused": 1,
    "a swap at a full server": 1,
    "a swap at a replica": 1,
}
"""The general way has the first error reply at once, and so needs one less."""


@pytest.mark.parametrize("name", GENERAL)
def test_a_short_cut_decides_as_the_general_way_does(name: str) -> None:
    request, said = SCRIPTS[name]
    short = by_thread(said, request, short=True)
    script = Script(said[FEWER.get(name, 0) :])
    client = new_client(lambda: BlockingScript(script))
    client.short_cuts = None
    general = outcome(client, lambda: ClientWire(client, Monitor()).call(request, 0.3))
    assert short == general


@pytest.mark.parametrize("queue", [True, False])
@pytest.mark.parametrize("spec", [LockSpec("a"), LockSpec("schlösser/7", ttl=0.5, capacity=3, weight=2, mode="permit")])
def test_the_short_cut_sends_what_the_general_way_does(spec: LockSpec, queue: bool) -> None:
    codec, claim = Codec("nämen", "höst", 7), Claim(spec, "owner-1", "~actor.1")
    order = write(codec, Take((claim,), queue), "channel")
    assert codec.taking(claim, "channel", queue) == order.program.call(order.size) + order.words
    order = write(codec, Release(claim, 0.0), "channel")
    assert codec.releasing(claim) == order.program.call(order.size) + order.words


@pytest.mark.parametrize("data", [b"{\r\n}", b"", None])
@pytest.mark.parametrize("clustered", [True, False])
def test_a_swap_is_sent_word_by_word_as_its_program_reads_it(data: bytes | None, clustered: bool) -> None:
    codec = RecordCodec("nämen", Codec("nämen", "höst", 7).chosen, clustered=clustered)
    request = SwapRecord("schlösser/7", 1794739688509270, data, "owner-1", 0.5, 3600.0)
    order, bucket = codec.swap(request), codec.buckets[crc32("schlösser/7".encode()) % len(codec.buckets)]
    name = bucket.records + "schlösser/7".encode()
    words: list[bytes | str | int] = [3, name, bucket.index, bucket.state, "schlösser/7", request.expected]
    words += ["owner-1", 500_000, 3_600_000, *([] if data is None else [data])]
    assert (order.size, order.words, order.key) == (len(words), bulks(*words), name)
    assert codec.swapping(request) == order.program.call(order.size) + order.words


def test_a_swap_is_not_sent_on_a_connection_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """It could not be sent again: nobody would know whether the first one was carried out."""
    script = Script([SWAPPED])
    client = new_client(lambda: BlockingScript(script))
    [ended] = cast(Primary, client.servers).pool.idle
    monkeypatch.setattr(BlockingScript, "readable", lambda self: self is ended.connection)
    said, count, idle, _ = outcome(client, lambda: ClientWire(client, Monitor()).call(SWAP, 0.3))
    assert (said, count, idle) == (Swapped(True, Record("k", 1794739688509276, b"{}", "owner-1", 30.0)), 1, 1)
    assert ended.connection.closed


# Cancellation, with a real server


@contextmanager
def held_up(proxy: Proxy) -> Iterator[None]:
    proxy.hold_up()
    try:
        yield
    finally:
        proxy.let_flow()


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_take_that_was_sent_and_cancelled_leaves_nothing(server: RedisServer, count: int) -> None:
    """One has a connection for itself, the others are carried out together; each is drained, then rolled back."""

    async def main() -> None:
        with proxied(server.port) as proxy:
            async with holdfast.aio.connect(proxy.url, request_timeout=20.0) as locks:
                assert await (await locks.lock("warm").acquire()).release()
                with held_up(proxy):
                    tasks = [asyncio.ensure_future(locks.lock(f"n{n}").acquire()) for n in range(count)]
                    await asyncio.sleep(0.01)  # some are under way, some wait for a carrier
                    for task in tasks:
                        task.cancel()
                    await asyncio.sleep(0.01)
                    assert not any(task.done() for task in tasks), "a cancellation waits for the reply"
                await asyncio.wait(tasks)
                assert all(task.cancelled() for task in tasks)
                assert not await locks.survey("")

    run(main())


@pytest.mark.parametrize("count", [1, 7])
def test_a_release_that_was_sent_and_cancelled_is_carried_out(server: RedisServer, count: int) -> None:
    async def main() -> None:
        with proxied(server.port) as proxy:
            async with holdfast.aio.connect(proxy.url, request_timeout=20.0) as locks:
                leases = [await locks.lock(f"n{n}").acquire() for n in range(count)]
                with held_up(proxy):
                    tasks = [asyncio.ensure_future(lease.release()) for lease in leases]
                    await asyncio.sleep(0.01)
                    for task in tasks:
                        task.cancel()
                await asyncio.wait(tasks)
                assert all(task.cancelled() for task in tasks)
                assert not await locks.survey("")

    run(main())


def test_calls_that_wait_for_a_carrier_end_when_all_is_closed(server: RedisServer) -> None:
    async def main() -> list[Any]:
        with proxied(server.port) as proxy:
            locks = await holdfast.aio.connect(proxy.url, request_timeout=20.0)
            assert await (await locks.lock("warm").acquire()).release()
            proxy.hold_up()
            calls: list[Awaitable[Any]] = [locks._wire.call(_take(n), 20.0) for n in range(5)]
            tasks = [asyncio.ensure_future(_awaited(call)) for call in calls]
            await asyncio.sleep(0.01)
            await locks._wire.close()
            return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)

    told = run(main())
    assert all(isinstance(each, Misconfigured) for each in told), told


def _take(number: int) -> Take:
    return Take((Claim(LockSpec(f"n{number}"), f"o{number}", "actor"),), True)


async def _awaited(call: Awaitable[Any]) -> Any:
    return await call


def test_tasks_are_put_together_at_once_and_threads_when_there_is_no_connection_left() -> None:
    assert BUSY_COUNT == {True: 1, False: 128}
