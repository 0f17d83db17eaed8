"""A push reaches whoever waits, in each way in which it can, and nobody else; what comes unasked is no reply."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest

import holdfast
import holdfast.aio
from holdfast._core.flow import Flow
from holdfast.backends.queue_backend import Push
from holdfast.backends.redis import connection as connections
from holdfast.backends.redis import short_cuts
from holdfast.backends.redis.resp import Pushed, RespReader
from holdfast.model import Predecessor
from tests.redis.faces import both, run, until
from tests.support.redis_server import RedisServer
from tests.support.redis_topologies import await_true

ON_ITS_OWN = 4
"""Take and release of both: a claim that waits on a connection that listens is told there, and asks once."""
SHARED = 5
"""The first that has to wait where connections do not listen subscribes before it queues, and so asks twice."""


def hand_over(face: str, server: RedisServer, url: str, **options: Any) -> int:
    """One holds, another waits, the first lets go: how many calls that took. None is made while waiting."""

    def calls() -> int:
        found: int = server.client().info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"]
        return found

    with holdfast.connect(url, **options) as locks:
        locks.lock("x").acquire().release()  # the server knows the programs
        held = locks.lock("x").acquire()
        surveys = 0

        def waits() -> bool:
            nonlocal surveys
            surveys += 1
            return any(view.waiters for view in locks.survey("x"))

        server.client().config_resetstat()
        if face == "sync":
            with holdfast.connect(url, **options) as others:
                thread = threading.Thread(target=lambda: others.lock("x").acquire().release())
                thread.start()
                await_true(waits, "somebody to wait")
                assert held.release()
                thread.join(30)
        else:

            async def wait() -> None:
                async with holdfast.aio.connect(url, **options) as others:
                    waiting = asyncio.ensure_future(others.lock("x").acquire())

                    async def look() -> bool:
                        return waits()

                    await until(look, bool)
                    assert await asyncio.to_thread(held.release)
                    assert await (await waiting).release()

            run(wait())
        return 1 + calls() - surveys  # the holder's take was before


@both
def test_a_waiter_is_told_on_its_own_connection(server: RedisServer, face: str) -> None:
    assert hand_over(face, server, server.url) == ON_ITS_OWN
    assert hand_over(face, server, f"unix://{server.unix_path}") == ON_ITS_OWN


@both
def test_or_on_one_for_all(server: RedisServer, face: str) -> None:
    assert hand_over(face, server, f"{server.url}?protocol=2") == SHARED


@both
@pytest.mark.parametrize("namespace", ["my locks", "schlösser", "50%*"])
def test_a_namespace_may_have_any_name(server: RedisServer, face: str, namespace: str) -> None:
    assert hand_over(face, server, server.url, namespace=namespace) == ON_ITS_OWN


def test_more_waiters_than_connections(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_cuts, "MOST_WAITERS_COUNT", 1)
    with holdfast.connect(server.url) as locks:
        held = locks.lock("x").acquire()
        tokens: list[int] = []

        def take() -> None:
            with locks.lock("x", timeout=30) as lease:
                tokens.append(lease.token)

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        await_true(lambda: any(len(view.waiters) == 4 for view in locks.survey("x")), "all to wait")
        assert held.release()
        for thread in threads:
            thread.join(30)
        assert len(tokens) == 4
        assert tokens == sorted(tokens)


def test_what_comes_unasked_is_no_reply(server: RedisServer) -> None:
    """A push to somebody who has left stands before the reply to the next request on the same connection."""
    with holdfast.connect(server.url) as locks:
        locks.lock("x").acquire().release()
        [channel] = server.client().pubsub_channels("holdfast/wake/*")
        for message in ("0123-1 1794739688509276", "nonsense"):
            assert server.client().publish(channel, message) == 1
            lease = locks.lock("x").acquire()
            assert server.client().publish(channel, message) == 1
            assert lease.token != 1794739688509276
            assert lease.release()
        assert server.client().publish(channel, "0123-1 1794739688509276") == 1
        assert locks.survey("") == []


class NoConnection:
    """Its ops are answered by the test."""

    closed = False

    def read(self) -> bytes | None:
        return None

    def readable(self) -> bool:
        return False

    def write(self, data: bytes) -> bool:
        return True

    def close(self) -> None: ...

    def abandon(self) -> None: ...


def answered(waiting: Flow[Push | None], pieces: list[bytes]) -> Push | None:
    """What a flow comes to that receives these pieces."""
    try:
        waiting.send(None)
        for piece in pieces:
            waiting.send(piece)
    except StopIteration as stop:
        push: Push | None = stop.value
        return push
    return None


def test_a_push_may_come_in_pieces_and_with_others() -> None:
    begins = b">3\r\n$7\r\nmessage\r\n$2\r\nch\r\n"
    mine = begins + b"$45\r\nowner-22 1794739688509276 r01794739688509275o\r\n"
    other = mine.replace(b"owner-22", b"owner-21")
    for pieces in ([mine], [other, mine], [mine[:30], mine[30:]], [other + mine[:9], mine[9:]]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(connections, "PUSHED", Pushed)
            patch.setattr(connections, "make_reader", RespReader)
            link = connections.RedisConnection(NoConnection(), WeakSet())
            link.listens_on("ch")
            waiting = link.await_push("owner-22", 1.0)
            assert answered(waiting, pieces) == Push(1794739688509276, Predecessor(1794739688509275, "o", "released"))


def test_all_of_it_without_hiredis(server: RedisServer) -> None:
    """The reader in Python tells pushes from replies too; which of the two is used is found out at the first import."""
    program = (
        "import sys; sys.modules['hiredis'] = None\n"
        "from pathlib import Path\n"
        "from tests.redis.test_pushes import ON_ITS_OWN, hand_over\n"
        "from tests.support.redis_server import RedisServer\n"
        f"server = RedisServer(Path({str(server.folder)!r}), {server.port}, [], {{}})\n"
        "assert [hand_over(face, server, server.url) for face in ('sync', 'asyncio')] == [ON_ITS_OWN] * 2\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=60, cwd=root)
