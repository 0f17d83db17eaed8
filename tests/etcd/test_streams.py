"""A waiter's stream: what comes in pieces, what is refused; and the flow that tells and closes beside the others."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast._core.flow import NOW, Flow, Spawn
from holdfast.backends.etcd.http import MalformedReply
from holdfast.backends.etcd.keys import Keys
from holdfast.backends.etcd.notifications import WatchStream
from holdfast.backends.etcd.queue import MARKED, KeyEntry
from holdfast.backends.etcd.rpc import Post, Rpc
from holdfast.backends.etcd.watch import for_one_before
from holdfast.backends.etcd.worker import Worker
from holdfast.backends.ordered_keys.handoff import HANDED, LOOK
from holdfast.sync.client_driver import Monitor
from holdfast.sync.events import ThreadEvent
from tests.etcd.cluster import Cluster, await_true, b64

KEYS = Keys("holdfast")
BEFORE, OWN = KEYS.claim("door", "seat.0"), KEYS.claim("door", "seat.1")
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def stream(leaving: Callable[[], bool] | None = None) -> WatchStream:
    """Of one that waits behind a claim that holds; all its watches have begun."""
    value: Any = {"i": "before-1", "g": MARKED}
    before = KeyEntry(BEFORE, "door", "before-1", 10, 10, 1, value)
    made = WatchStream(None, for_one_before(before, OWN, True, 20, leaving), 0.0)  # type: ignore[arg-type]
    assert made.feed(HEAD + b"".join(said(created=True) for _ in range(4))) is None
    return made


def said(**result: Any) -> bytes:
    text = json.dumps({"result": {"header": {"revision": "20"}, **result}}).encode() + b"\n"
    return f"{len(text):x}\r\n".encode() + text + b"\r\n"


def end_of(key: str) -> bytes:
    return said(events=[{"type": "DELETE", "kv": {"key": key, "mod_revision": "30"}}])


def test_an_end_of_its_own_that_comes_in_two_pieces_is_no_grant_whatever_follows_it() -> None:
    """Its lease was revoked, and then the claim before it ended: it holds nothing."""
    both = end_of(OWN) + end_of(BEFORE)
    for at in range(1, len(both)):
        listening = stream()
        assert [listening.feed(both[:at]), listening.feed(both[at:])].count(HANDED) == 0
    assert stream().feed(end_of(BEFORE)) == HANDED


def test_the_end_of_one_of_our_own_that_had_not_begun_to_leave_is_a_reason_to_look() -> None:
    """It hangs on the same lease: what it ends with may have ended the waiter's claim, too."""
    assert stream(leaving=lambda: True).feed(end_of(BEFORE)) == HANDED
    for pieces in ([end_of(BEFORE)], [end_of(BEFORE)[:9], end_of(BEFORE)[9:]]):
        listening = stream(leaving=lambda: False)
        assert [listening.feed(piece) for piece in pieces][-1] == LOOK


def test_a_lease_that_an_operator_revokes_grants_nothing_to_who_waits_by_it(state_cluster: Cluster) -> None:
    [member, *_] = state_cluster.members
    with holdfast.connect(state_cluster.url, namespace="revoked", ttl=9) as locks:
        for _ in range(5):
            held, taken = locks.lock("door").acquire(), list[Any]()
            waiter = threading.Thread(target=lambda: taken.append(locks.lock("door").acquire(timeout=60)))  # noqa: B023
            waiter.start()
            await_true(lambda: [view for view in locks.survey("door") if view.waiters], "a waiter")
            await_true(lambda: state_cluster.watchers() >= 4, "its watches")
            line: dict[str, Any] = {"key": b64(b"revoked/line/door\0"), "range_end": b64(b"revoked/line/door\1")}
            [lease] = {kv["lease"] for kv in member.rpc("/v3/kv/range", **line)["kvs"]}
            member.rpc("/v3/lease/revoke", ID=lease)
            waiter.join(60)
            [claim] = member.rpc("/v3/kv/range", **line)["kvs"]
            assert int(claim["create_revision"]) == taken[0].token
            taken[0].release()
            held.release()


def test_a_stream_whose_watches_were_refused_is_given_up() -> None:
    """Nothing more comes on it: it is closed, and the next one has another token."""
    for refused in (
        said(created=True, canceled=True, cancel_reason="rpc error: code = PermissionDenied"),
        said(canceled=True),
    ):
        with pytest.raises(MalformedReply):
            stream().feed(refused)
    assert stream().feed(said(canceled=True, compact_revision="25")) == LOOK  # of the past; its companion goes on


def test_who_is_interrupted_as_the_worker_begins_leaves_it_to_the_next_one() -> None:
    """A signal that raises, in the thread that starts another for it."""
    told, over = list[str](), threading.Event()

    def tell(rpcs: Any, deadline: float) -> Flow[None]:
        yield NOW
        told.extend(rpc.path for rpc in rpcs)

    def dial(deadline: float) -> Flow[None]:
        yield NOW

    worker = Worker(tell, dial, over.set)
    post = Post(lambda: Rpc("first", ""))
    interrupted = worker.put(post)
    next(interrupted)
    begun = interrupted.send(ThreadEvent())
    assert isinstance(begun, Spawn)
    with pytest.raises(KeyboardInterrupt):
        interrupted.throw(KeyboardInterrupt())
    monitor = Monitor()
    monitor.run(worker.put(Post(lambda: Rpc("second", ""))))
    await_true(lambda: told == ["first", "second"], "both")
    monitor.run(begun.flow)  # it was started after all: it does what is left, and disturbs nobody
    monitor.run(worker.put(Post(lambda: Rpc("third", ""))))
    await_true(lambda: told[2:] == ["third"], "the third")
    monitor.run(worker.finish(float("inf")))
    assert over.is_set()
