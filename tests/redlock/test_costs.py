"""What the usual uses cost a node, in commands, and what is prepared for them in the client; never in time."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

import holdfast
from holdfast.backends.redlock.backend import RedlockBackend
from tests.redlock.quorums import Servers, eventually
from tests.support.redis_server import RedisServer

NAMES_COUNT = 20
TAKE, NEW = Counter(set=1, zadd=1), Counter(set=1, zadd=2, get=1, time=1)
"""The take of a name that is known, and of one that is not."""
RELEASE = Counter({"get": 1, "del": 1})


def commands(node: RedisServer) -> Counter[str]:
    """What a server has done so far, programs among it."""
    found = Counter[str]()
    for line in node.raw("INFO", "commandstats").decode().splitlines():
        if line.startswith("cmdstat_"):
            name, _, rest = line.removeprefix("cmdstat_").partition(":calls=")
            found[name] = int(rest.partition(",")[0])
    return found


@pytest.mark.parametrize(("known", "expected"), [(True, TAKE + RELEASE), (False, NEW + RELEASE)])
def test_commands_of_a_take_and_a_release(five: Servers, namespace: str, known: bool, expected: Counter[str]) -> None:
    node = five.nodes[0]
    with holdfast.connect(five.url(), namespace=namespace) as locks:
        locks.lock("kept").acquire().release()
        eventually(lambda: node.raw("EXISTS", f"{namespace}/hold/kept") == b":0\r\n", "this node has heard of it, too")
        before = commands(node)
        for number in range(NAMES_COUNT):
            with locks.lock("kept" if known else f"orders/{number}", ttl=10, timeout=5):
                pass
        eventually(lambda: (commands(node) - before)["evalsha"] == 2 * NAMES_COUNT, "this node has heard all")
    done = commands(node) - before
    assert {name: done[name] / NAMES_COUNT for name in expected} == expected


def test_commands_of_a_release_after_a_wait(five: Servers, namespace: str) -> None:
    """It has left the line when it was let in, so nobody looks for it there."""
    node = five.nodes[0]
    with (
        holdfast.connect(five.url(), namespace=namespace) as one,
        holdfast.connect(five.url(), namespace=namespace) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        lease = one.lock("a", ttl=30).acquire()
        waiting = pool.submit(other.lock("a", ttl=30).acquire, timeout=60)
        eventually(lambda: any(view.waiters for view in one.survey("a")), "it waits")
        lease.release()
        lease = waiting.result(60)
        eventually(lambda: lease.owner.encode() in node.raw("GET", f"{namespace}/hold/a"), "this node has let it in")
        before = commands(node)
        assert lease.release()
        eventually(lambda: (commands(node) - before)["evalsha"] == 1, "this node has heard of it")
    done = commands(node) - before
    assert {name: done[name] for name in done if name not in ("evalsha", "info")} == {"get": 2, "del": 1}


def test_options_are_prepared_once_and_names_are_not(five: Servers, namespace: str) -> None:
    with holdfast.connect(five.url(), namespace=namespace) as locks:
        backend = locks._engine.backend
        assert isinstance(backend, RedlockBackend)
        for number in range(NAMES_COUNT):
            with locks.lock(f"orders/{number}", ttl=10, timeout=5):
                pass
        assert len(backend._kept) == 1
