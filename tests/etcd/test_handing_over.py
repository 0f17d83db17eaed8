"""From the end of a claim to the next holder: what a waiter may believe, and what is told aside."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

import holdfast
from holdfast._core.flow import NOW, Flow, Sleep, WaitEvent
from holdfast.backends import open_engine
from holdfast.backends.etcd.claim_state import ClaimState
from holdfast.backends.etcd.client_identity import ClientIdentity
from holdfast.backends.etcd.grant import GrantFlows
from holdfast.backends.etcd.keys import Keys
from holdfast.backends.etcd.queue import MARKED, WAITING, KeyEntry
from holdfast.backends.etcd.rpc import Post, Rpc, b64
from holdfast.backends.etcd.session import Session
from holdfast.backends.etcd.sessions import Sessions
from holdfast.backends.etcd.txns import QueueSnapshot
from holdfast.backends.etcd.watch import Watch, for_one_before
from holdfast.backends.etcd.worker import Worker
from holdfast.backends.ordered_keys.handoff import HANDED, LOOK
from holdfast.clock import now
from holdfast.errors import OutcomeUnknown
from holdfast.model import Claim
from holdfast.recipes import specs
from holdfast.sync.client_driver import Monitor
from holdfast.sync.coordinator import Coordinator
from holdfast.sync.events import ThreadEvent
from holdfast.testing.faults import FaultInjector, FaultyEngine
from tests.etcd.cluster import Cluster, await_true

KEYS = Keys("holdfast")
KEY = KEYS.claim("door", "seat.0")
SEEN = 20
CREATED = 10


def watch(granted: int = WAITING, leaving: Callable[[], bool] | None = None, **words: Any) -> Watch:
    """Of a claim that was created at 10, as a look at 20 has shown it."""
    value: Any = {"i": "before-1", "g": granted, **words}
    before = KeyEntry(KEY, "door", "before-1", CREATED, CREATED, 1, value)
    return for_one_before(before, "own", False, SEEN, leaving)


def message(**result: Any) -> bytes:
    return json.dumps({"result": {"header": {"revision": str(SEEN)}, **result}}).encode()


def begins(revision: int = SEEN) -> bytes:
    return message(header={"revision": str(revision)}, created=True)


def written(created: int = CREATED, granted: int = MARKED) -> bytes:
    value = b64(json.dumps({"i": "before-1", "g": granted}))
    return message(events=[{"kv": {"key": KEY, "create_revision": str(created), "value": value}}])


def end_of(key: str) -> bytes:
    return message(events=[{"type": "DELETE", "kv": {"key": key, "mod_revision": "30"}}])


ENDED = end_of(KEY)


def heard(listening: Watch, *lines: bytes) -> list[str | None]:
    return [listening.hear(line) for line in lines]


def test_the_end_of_a_claim_that_wrote_that_it_holds_is_the_grant() -> None:
    assert heard(watch(), begins(), written(), ENDED) == [None, None, HANDED]


def test_the_end_of_a_claim_that_was_seen_to_hold_is_the_grant() -> None:
    assert heard(watch(MARKED), begins(), ENDED) == [None, HANDED]


def test_the_end_of_a_claim_that_only_waited_is_a_reason_to_look() -> None:
    """Others stand before it."""
    assert heard(watch(), begins(), ENDED) == [None, LOOK]
    assert heard(watch(), begins(), written(granted=WAITING), ENDED) == [None, None, LOOK]


def test_a_seat_that_was_taken_again_tells_nothing_of_the_claim_before() -> None:
    assert heard(watch(), begins(), written(created=CREATED + 15), ENDED) == [None, None, LOOK]
    listening = watch()
    listening.holds(CREATED + 15)
    assert listening.hear(ENDED) == LOOK


def test_the_end_of_a_hold_that_may_leave_a_ghost_is_a_reason_to_look() -> None:
    listening = watch(MARKED, l=1)
    assert listening.glimpse(ENDED) is None
    assert heard(listening, begins(), written(), ENDED) == [None, None, LOOK]


def test_a_glimpse_is_enough_for_whoever_knows_that_the_claim_before_holds() -> None:
    listening = watch()
    assert listening.glimpse(ENDED) is None
    listening.holds(CREATED)
    assert listening.glimpse(written()) is None
    assert listening.glimpse(ENDED[:-40]) is None  # whose end it is, is not there yet
    assert listening.glimpse(ENDED[:-4]) == HANDED


def test_if_something_was_written_before_the_watch_began_a_known_hold_may_be_over() -> None:
    assert heard(watch(MARKED), begins(SEEN + 1)) == [LOOK]
    assert heard(watch(), begins(SEEN + 1)) == [None]  # the watch from the past will tell


@pytest.mark.parametrize(("leaving", "verdict"), [(False, None), (True, LOOK)])
def test_of_our_own_it_is_known_whether_they_have_begun_to_leave(leaving: bool, verdict: str | None) -> None:
    """Asked once the watch that begins now has begun: what happens after that is heard."""
    assert heard(watch(leaving=lambda: leaving), begins(SEEN + 1), begins(SEEN + 2)) == [None, verdict]
    assert heard(watch(leaving=lambda: leaving), begins(), begins(SEEN + 2)) == [None, None]


def waiting(locks: Coordinator, count: int) -> None:
    await_true(lambda: [len(view.waiters) for view in locks.survey("door")] == [count], f"{count} to wait")


def test_threads_of_one_coordinator_tell_each_other(state_cluster: Cluster) -> None:
    """A holder tells the one behind it that it holds, without etcd; nobody believes it of a claim that waits."""
    faults = FaultInjector()
    engine = FaultyEngine(open_engine(state_cluster.url, "holdfast", 5.0), faults)
    with Coordinator(engine, 30.0, None, None) as locks:
        first = locks.lock("door").acquire()
        tokens: list[int] = []
        go_on = threading.Event()

        def take() -> None:
            with locks.lock("door") as lease:
                tokens.append(lease.token)
                go_on.wait(20)

        threads = [threading.Thread(target=take) for _ in range(2)]
        for number, thread in enumerate(threads, 1):
            thread.start()
            waiting(locks, number)
        backend: Any = locks._core.backend
        backend._acquire.grants._mark_of = lambda state, since: None  # etcd is told nothing
        [view] = locks.survey("door")
        second, third = (backend.watch_of(claim.owner) for claim in view.waiters)
        assert (second._handoff.holds, third._handoff.holds) == (True, False)
        assert second.glimpse(end_of(second.key)) is None  # it has not begun to leave
        assert first.release()
        await_true(lambda: len(tokens) == 1, "the second")
        assert third._handoff.holds
        go_on.set()
        for thread in threads:
            thread.join(20)
        assert [first.token, *tokens] == sorted({first.token, *tokens})


def test_one_that_came_to_hold_while_the_other_lined_up_is_found_too() -> None:
    """It told nobody, because nobody was there yet."""
    sessions = Sessions(KEYS)
    identity = ClientIdentity("holdfast", "host", lambda: 1, lambda: 1, 1.0)
    session = Session(1, 30, sole=False)
    before, behind = (
        ClaimState(Claim(specs.mutex("door", {"ttl": 30.0}), owner, "actor"), KEYS.claim("door", owner), "", session)
        for owner in ("before-1", "behind-1")
    )
    sessions.states["before-1"] = before
    seen = KeyEntry(before.key, "door", "before-1", CREATED, CREATED, 1, {"i": "before-1"})
    own = KeyEntry(behind.key, "door", "behind-1", SEEN, SEEN, 1, {"i": "behind-1"})
    grants = GrantFlows(identity, KEYS, sessions)
    grants.queued(behind, QueueSnapshot(own, seen, [], None, SEEN, 3), 0.0)
    assert behind.watch is not None
    before.leaving = True
    assert behind.watch.glimpse(end_of(before.key)) is None
    sessions.cancel_watch(behind)
    assert not sessions.behind
    before.token = CREATED
    grants.queued(behind, QueueSnapshot(own, seen, [], None, SEEN, 3), 0.0)
    assert behind.watch.glimpse(end_of(before.key)) == HANDED


def test_who_has_left_says_no_more_that_it_holds(state_cluster: Cluster) -> None:
    faults = FaultInjector()
    engine = FaultyEngine(open_engine(state_cluster.url, "holdfast", 5.0), faults)
    with Coordinator(engine, 30.0, None, None) as locks:
        first = locks.lock("door").acquire()
        waiter = threading.Thread(target=lambda: locks.lock("door").acquire().release())
        waiter.start()
        waiting(locks, 1)
        assert first.release()
        waiter.join(20)
        [mark] = [request for request in faults.requests if isinstance(request, Post)]
        assert mark.make() is None


def test_since_when_a_holder_holds_is_told_soon(state_cluster: Cluster) -> None:
    with holdfast.connect(state_cluster.url) as locks:
        first = locks.lock("door").acquire()
        leases: list[Any] = []
        waiter = threading.Thread(target=lambda: leases.append(locks.lock("door").acquire()))
        waiter.start()
        waiting(locks, 1)
        assert first.release()
        waiter.join(20)
        look = state_cluster.members[0]
        key = locks._core.backend.sessions.states[leases[0].owner].key  # type: ignore[attr-defined]

        def marked() -> bool:
            [kv] = look.rpc("/v3/kv/range", key=key)["kvs"]
            return int(kv["mod_revision"]) > int(kv["create_revision"])

        await_true(marked, "it to say that it holds")
        assert leases[0].release()


# The worker


class Telling:
    """Tells a worker's RPCs to a list, when it may."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.batches = 0
        self.under_way, self.go_on = threading.Event(), threading.Event()
        self.monitor = Monitor()
        self.dialled: list[str] = []
        self.worker = Worker(self._tell, self._dial_ahead, lambda: self.dialled.append("closed"))

    def _tell(self, rpcs: Sequence[Rpc], deadline: float) -> Flow[None]:
        self.batches += 1
        self.under_way.set()
        yield Sleep(0.0) if self.go_on.is_set() else WaitEvent(self.event, 20)
        self.told.extend(rpc.path for rpc in rpcs)
        raise OutcomeUnknown("no answer")

    def _dial_ahead(self, deadline: float) -> Flow[None]:
        yield NOW
        self.dialled.append("dialled")
        raise ConnectionRefusedError

    def put(self, *paths: str | None) -> None:
        for path in paths:
            made = None if path is None else Rpc(path, "")
            self.monitor.run(self.worker.put(Post(partial(lambda rpc: rpc, made))))

    def let_go(self) -> None:
        self.go_on.set()
        self.event.set()

    event: Any = None


@pytest.fixture
def telling() -> Telling:
    made = Telling()
    made.event = ThreadEvent()
    return made


class OldStream:
    closed = False

    def close(self) -> None:
        self.closed = True


def test_where_a_stream_has_ended_the_next_one_is_dialled_ahead(telling: Telling) -> None:
    """And what nobody has used by the end of the worker is closed."""
    telling.let_go()
    telling.put("first")
    await_true(lambda: telling.told == ["first"], "the first")
    stream: Any = OldStream()
    telling.monitor.run(telling.worker.put(stream))
    await_true(lambda: stream.closed and telling.dialled == ["dialled"], "a connection ahead")
    telling.put("second")
    await_true(lambda: telling.told == ["first", "second"], "the second, although nobody could be reached")
    telling.monitor.run(telling.worker.finish(now() + 20))
    assert telling.dialled == ["dialled", "closed"]


def test_a_post_that_fails_keeps_no_other_from_being_told(telling: Telling) -> None:
    telling.let_go()
    telling.put(None, "first")
    await_true(lambda: telling.told == ["first"], "the first")
    telling.put("second")
    await_true(lambda: telling.told == ["first", "second"], "the second")
    telling.monitor.run(telling.worker.finish(now() + 20))


def test_what_gathers_meanwhile_is_told_in_one_write(telling: Telling) -> None:
    telling.put("first")
    assert telling.under_way.wait(20)
    telling.put("second", None, "third")
    telling.let_go()
    await_true(lambda: telling.told == ["first", "second", "third"], "all of them")
    assert telling.batches == 2
    telling.monitor.run(telling.worker.finish(now() + 20))


def test_who_ends_waits_for_what_is_still_to_be_told(telling: Telling) -> None:
    telling.put("first")
    assert telling.under_way.wait(20)
    telling.put("second")
    ending = threading.Thread(target=telling.monitor.run, args=(telling.worker.finish(now() + 20),))
    ending.start()
    telling.let_go()
    ending.join(20)
    assert telling.told == ["first", "second"]
