"""However long a name is, all watches of a waiter begin.

Go's server throws away what it has not read of a stream's request when it begins to answer it, which is anything behind
the first 512 bytes, unless the request is the last of its connection.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from functools import partial

import pytest

import holdfast
import holdfast.aio
from holdfast.backends.etcd.http import LAST_REQUEST, MalformedReply
from holdfast.backends.etcd.notifications import BEGIN_S, WatchStream
from holdfast.backends.etcd.queue import MARKED, KeyEntry
from holdfast.backends.etcd.rpc import b64
from holdfast.backends.etcd.watch import Watch, for_one_before
from holdfast.backends.ordered_keys.handoff import HANDED, LOOK
from holdfast.clock import now
from holdfast.sync.client_driver import Monitor
from holdfast.sync.connection import ThreadConnection
from tests.etcd.cluster import Cluster, await_true, running

WAITERS_COUNT = 60
WATCHES_COUNT = 4
"""Of a waiter in the line of a mutex: for the claim before it and for its own, from the look on and from now on."""
STREAMS = re.compile(r'^grpc_server_started_total\{grpc_method="Watch".*\} (\d+)', re.MULTILINE)
names = pytest.mark.parametrize("name", ["door", "n" * 40, "n" * 512], ids=len)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running(1) as cluster:
        yield cluster


def streams(cluster: Cluster) -> int:
    """How many were ever opened."""
    found = STREAMS.search(cluster.members[0].metrics())
    return int(found[1]) if found else 0


@names
def test_threads_all_watches_begin(cluster: Cluster, name: str) -> None:
    """Of two coordinators in turns: whoever stands behind a claim of its own coordinator needs no stream."""
    before = streams(cluster)
    with holdfast.connect(cluster.url) as some, holdfast.connect(cluster.url) as others:
        holder = some.lock(name).acquire()
        threads = []
        for number in range(1, WAITERS_COUNT + 1):
            threads.append(threading.Thread(target=take_and_leave, args=(others if number % 2 else some, name)))
            threads[-1].start()
            await_true(partial(begun, cluster, number), "all watches")
        assert streams(cluster) - before == WAITERS_COUNT  # none was opened again
        assert holder.release()
        for thread in threads:
            thread.join(60)
    await_true(lambda: cluster.watchers() == 0, "nobody to listen")


def take_and_leave(locks: holdfast.Coordinator, name: str) -> None:
    with locks.lock(name):
        pass


@names
def test_asyncio_all_watches_begin(cluster: Cluster, name: str) -> None:
    before = streams(cluster)

    async def play() -> None:
        async with holdfast.aio.connect(cluster.url) as some, holdfast.aio.connect(cluster.url) as others:
            holder = await some.lock(name).acquire()

            async def wait(locks: holdfast.aio.Coordinator) -> None:
                async with locks.lock(name):
                    pass

            waiters = []
            for number in range(1, WAITERS_COUNT + 1):
                waiters.append(asyncio.ensure_future(wait(others if number % 2 else some)))
                await asyncio.to_thread(await_true, partial(begun, cluster, number), "all watches")
            assert streams(cluster) - before == WAITERS_COUNT
            assert await holder.release()
            await asyncio.gather(*waiters)

    asyncio.run(play())
    await_true(lambda: cluster.watchers() == 0, "nobody to listen")


def begun(cluster: Cluster, waiters: int) -> bool:
    return cluster.watchers() == WATCHES_COUNT * waiters


# By hand: a stream of which something was cut off

OLD, OWN = b64("holdfast/line/door\0a.0"), b64("holdfast/line/door\0b.0")
HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


class Silent(ThreadConnection):
    """A connection on which nothing comes."""

    def __init__(self) -> None:
        pass  # it has no socket

    def receive(self, deadline: float) -> bytes:
        raise TimeoutError("no answer in time")


def watch() -> Watch:
    return for_one_before(KeyEntry(OLD, "door", "a-1", 7, 7, 1, {"g": MARKED}), OWN, True, 7, None)


def message(**result: object) -> bytes:
    line = json.dumps({"result": {"header": {"revision": "7"}, **result}}) + "\n"
    return f"{len(line):x}\r\n{line}\r\n".encode()


BEGUN = message(created=True)
ENDED = message(events=[{"type": "DELETE", "kv": {"key": OLD, "mod_revision": "9"}}])


def stream() -> WatchStream:
    return WatchStream(Silent(), watch(), now())


def test_an_end_is_a_grant_once_all_watches_have_begun() -> None:
    one = stream()
    assert one.feed(HEAD + WATCHES_COUNT * BEGUN) is None
    assert one.feed(ENDED) == HANDED


@pytest.mark.parametrize("begun", range(WATCHES_COUNT))
def test_an_end_is_a_reason_to_look_while_one_has_not(begun: int) -> None:
    one = stream()
    assert one.feed(HEAD + begun * BEGUN) is None
    assert one.feed(ENDED) == LOOK


def test_a_stream_of_which_some_watches_do_not_begin_is_given_up() -> None:
    one = stream()
    one.feed(HEAD + BEGUN)
    with pytest.raises(MalformedReply, match="3 watches have not begun"):
        Monitor().run(one.verdict(now() + 2 * BEGIN_S))
    one.feed(3 * BEGUN)
    assert Monitor().run(one.verdict(now() + 2 * BEGIN_S)) is None


def test_a_watch_is_the_last_request_of_its_connection() -> None:
    assert LAST_REQUEST.encode() in stream().request("Host: h\r\n")
