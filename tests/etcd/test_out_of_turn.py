"""`fair=False` on etcd: room is never given twice, and whoever was overtaken gets a token above that one's."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import holdfast
from holdfast.backends import open_engine
from holdfast.backends.etcd.queue import CONFIRMED, MARKED, KeyEntry, judge
from holdfast.model import Claim, Queued
from holdfast.ports import AnyWire, untyped_wire
from holdfast.recipes import specs
from holdfast.sync.driver import run
from tests.etcd.cluster import Cluster, await_true


def entry(owner: str, created: int, weight: int, capacity: int = 3, **words: Any) -> KeyEntry:
    value: Any = {"i": owner, "w": weight, "c": capacity, **words}
    return KeyEntry(owner, "pool", owner, created, words.get("changed", created), 1, value, tombstone="k" in words)


def test_whoever_is_overtaken_gets_a_larger_token(state_cluster: Cluster) -> None:
    with holdfast.connect(state_cluster.url) as locks:
        first = locks.semaphore("pool", permits=3, weight=2).acquire()
        heavy: list[Any] = []
        waiter = threading.Thread(target=lambda: heavy.append(locks.semaphore("pool", permits=3, weight=3).acquire()))
        waiter.start()
        await_true(lambda: [len(view.waiters) for view in locks.survey("pool")] == [1], "a waiter")
        quick = locks.semaphore("pool", permits=3, fair=False).acquire(timeout=0)
        [view] = locks.survey("pool")
        assert sorted(str(claim.token) for claim in view.holders) == sorted([str(first.token), str(quick.token)])
        assert locks.check(quick.sequencer())
        quick.renew()
        assert quick.release()
        assert first.release()
        waiter.join(20)
        assert heavy[0].token > quick.token > first.token
        heavy[0].renew()
        assert locks.check(heavy[0].sequencer())
        assert locks.evict("pool", heavy[0].token)
        assert heavy[0].release() is False


def test_room_is_never_given_twice(state_cluster: Cluster) -> None:
    """Fair and unfair, light and heavy, through two coordinators, over and over."""
    permits, mutex = 4, threading.Lock()
    inside: list[int] = []
    tokens: list[int] = []
    broken: list[str] = []

    def work(locks: holdfast.Coordinator, seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(12):
            weight = chance.randint(1, permits)
            with locks.semaphore("crowd", permits=permits, weight=weight, fair=chance.random() < 0.5) as lease:
                with mutex:
                    inside.append(weight)
                    tokens.append(lease.token)
                    if sum(inside) > permits:
                        broken.append(f"{inside} of {permits}")
                with mutex:
                    inside.remove(weight)

    with holdfast.connect(state_cluster.url) as one, holdfast.connect(state_cluster.url) as other:
        workers = [threading.Thread(target=work, args=(one if n % 2 else other, n)) for n in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(100)
    assert broken == []
    assert len(set(tokens)) == len(tokens) == 96


class Meddling:
    """A wire on which something happens right before a request."""

    def __init__(self, wire: AnyWire) -> None:
        self._wire = untyped_wire(wire)
        self.before: dict[int, Callable[[], object]] = {}
        self.calls = 0

    def call(self, request: Any, timeout: float) -> Any:
        if meddle := self.before.pop(self.calls, None):
            meddle()
        self.calls += 1
        return self._wire.call(request, timeout)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)


def test_nobody_is_overtaken_into_room_that_is_no_longer_free(state_cluster: Cluster) -> None:
    """Between the look and the grant a holder leaves, and with that the heavy one holds: no room is left."""
    engine = open_engine(state_cluster.url, "holdfast", 5.0)
    wire = Meddling(engine.wire())
    with holdfast.connect(state_cluster.url) as locks:
        first = locks.semaphore("pool", permits=3, weight=2).acquire()
        heavy: list[Any] = []
        waiter = threading.Thread(target=lambda: heavy.append(locks.semaphore("pool", permits=3, weight=3).acquire()))
        waiter.start()
        await_true(lambda: [len(view.waiters) for view in locks.survey("pool")] == [1], "a waiter")
        claim = Claim(specs.permit("pool", {"ttl": 30.0, "fair": False}, 3, 1), "quick-1", "quick")
        wire.before[2] = first.release  # a try for a free line, into the line, and then past the heavy one
        outcome = run(engine.backend.take(claim, True), wire)
        assert isinstance(outcome, Queued)
        waiter.join(20)
        [view] = locks.survey("pool")
        assert [each.token for each in view.holders] == [heavy[0].token]
        run(engine.backend.release(claim), wire)
        assert heavy[0].release()
    wire.close()


def test_a_claim_holds_if_it_and_all_before_it_fit() -> None:
    line = judge([entry("a", 1, 2), entry("b", 2, 2), entry("c", 3, 1)], [])
    assert [each.owner for each in line.holding] == ["a"]
    assert [each.owner for each in line.waiting] == ["b", "c"]


def test_what_was_granted_out_of_turn_counts_first() -> None:
    """The heavy one would fit, by its place; but the room is taken."""
    line = judge([entry("heavy", 2, 3), entry("quick", 3, 1, g=CONFIRMED, changed=9)], [])
    assert [(each.owner, each.token) for each in line.holding] == [("quick", 9)]
    assert [each.owner for each in line.waiting] == ["heavy"]


def test_a_ghost_counts_once_its_claim_is_gone() -> None:
    claims = [entry("a", 1, 1, capacity=1, g=MARKED), entry("b", 2, 1, capacity=1)]
    delay_lease = entry("a", 1, 1, capacity=1, k=0)
    assert [each.owner for each in judge(claims, [delay_lease]).holding] == ["a"]
    line = judge(claims[1:], [delay_lease])
    assert (line.holding, [each.owner for each in line.waiting], line.tombstones) == ([], ["b"], [delay_lease])


def test_a_claim_of_another_capacity_does_not_count() -> None:
    line = judge([entry("reader", 1, 1, capacity=9), entry("mutex", 2, 1, capacity=1), entry("other", 3, 1, 9)], [])
    assert line.capacity == 9
    assert [each.owner for each in line.holding] == ["reader", "other"]


def test_whoever_came_to_wait_behind_a_marked_claim_is_marked_with_its_grant(state_cluster: Cluster) -> None:
    """Three writers, one of them overtaken: each token is larger than the one before, though all came before them."""
    with holdfast.connect(state_cluster.url) as locks:
        doc, tokens = locks.rwlock("doc"), list[int]()
        reader = doc.read().acquire()

        def write() -> None:
            with doc.write() as lease:
                tokens.append(lease.token)

        def writer(number: int) -> threading.Thread:
            thread = threading.Thread(target=write)
            thread.start()
            await_true(lambda: [len(view.waiters) for view in locks.survey("doc")] == [number], "a writer")
            return thread

        writers = [writer(1)]
        quick = locks.rwlock("doc", fair=False).read().acquire(timeout=0)
        writers += [writer(2), writer(3)]
        assert reader.release()
        assert quick.release()
        for thread in writers:
            thread.join(30)
        assert [reader.token, quick.token, *tokens] == sorted({reader.token, quick.token, *tokens})
        assert len(tokens) == 3
