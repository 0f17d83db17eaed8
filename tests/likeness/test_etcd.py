"""The simulated etcd answers as the real one does, to the byte. What is made equal before: see `etcd_sides`."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

import holdfast
from holdfast_sim.servers.etcd import EtcdCluster, leases, requests, store, txn
from tests.etcd.cluster import Member, b64, running
from tests.likeness.etcd_requests import Asker, framed
from tests.likeness.etcd_sides import TIMEOUT_S, Modelled, Real, await_created, levelled, model_of, told
from tests.likeness.play import RealTime, in_pieces, rounds, serving

FEW_ROUNDS = 6
STEPS_COUNT = 30
PATIENCE_S = 3.0
NEXT_SYNC_S = 0.11
QUIET_S = 0.02


@pytest.fixture(scope="module")
def real() -> Iterator[Member]:
    with running(1) as cluster:
        [member] = cluster.members
        yield member


def play(real: Member, seed: int) -> None:
    chance = Random(seed)
    cluster, host = model_of(real, Random(seed))
    asker = Asker(chance, f"{seed}-{time.time_ns()}/", cluster.members[0].state.store.revision)
    links = [(Real(real), Modelled(cluster, host)) for _ in range(2)]
    streams: list[tuple[Real, Modelled]] = []
    try:
        for step in range(STEPS_COUNT):
            if chance.random() < 0.15:
                asked = asker.watch()
                streams.append((Real(real), Modelled(cluster, host)))
                streams[-1][0].ask([asked], 0)
                streams[-1][1].ask([asked])
                await_created(streams[-1][0], asked)
                continue
            link, twin = chance.choice(links)
            batch = asker.batch()
            if streams and any(b"/compaction" in each for each in batch):
                time.sleep(2 * NEXT_SYNC_S)  # else it would be chance whether a watch was behind what is compacted
                host.run_due()
            pieces = list(in_pieces(b"".join(batch), chance))
            expected, answered = link.ask(pieces, len(batch)), twin.ask(pieces)
            for request, one, other in itertools.zip_longest(batch, expected, answered, fillvalue=b""):
                assert levelled(other) == levelled(one), f"seed {seed}, step {step}: {request[:2000]!r}"
            asker.revision = cluster.members[0].state.store.revision
        time.sleep(NEXT_SYNC_S)
        host.run_due()
        for number, (link, twin) in enumerate(streams):
            answered_words, end = told(bytes(twin.output.data)), time.monotonic() + PATIENCE_S
            while (expected_words := told(link.heard(QUIET_S))) != answered_words and time.monotonic() < end:
                pass  # the real server may take its time to tell
            assert answered_words == expected_words, f"seed {seed}, stream {number}"
    finally:
        for link, _ in links + streams:
            link.close()


def play_all(real: Member) -> None:
    for seed in range(FEW_ROUNDS):
        play(real, seed)


@pytest.mark.parametrize("seed", range(rounds(FEW_ROUNDS)))
def test_random_requests_are_answered_alike(real: Member, seed: int) -> None:
    play(real, seed)


def _no_version(self: store.Store, key: bytes, value: bytes, lease: int) -> None:
    """A planted difference: the version is not counted."""
    revision, old = self.revision + 1, self._live.get(key)
    created = old.created if old else revision
    self._change(store.Event(store.KeyValue(key, created, revision, 1, value, lease), False))


def _range_of_none_is_true(kvs: store.Store, compare: requests.Compare) -> bool:
    """A planted difference: nothing to compare with is as good as true."""
    return all(txn._is_true(compare, kv) for kv in kvs.at(compare.span, 0))


def _keeps_keys(self: leases.Lessor, key: bytes, old: int, new: int) -> None:
    """A planted difference: a key that was put again, or deleted, stays with its old lease."""
    if new:
        self.leases[new].keys.add(key)


PLANTED: list[tuple[object, str, Callable[..., object]]] = [
    (store.Store, "put", _no_version),
    (txn, "_holds", _range_of_none_is_true),
    (leases.Lessor, "attach", _keeps_keys),
]


@pytest.mark.parametrize(("owner", "name", "wrong"), PLANTED, ids=[wrong.__name__ for *_, wrong in PLANTED])
def test_a_planted_difference_is_found(
    real: Member, monkeypatch: pytest.MonkeyPatch, owner: object, name: str, wrong: Callable[..., object]
) -> None:
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(AssertionError, match="seed"):
        play_all(real)


def test_a_lease_that_ends_takes_its_keys_along(real: Member) -> None:
    chance = Random(0)
    cluster, host = model_of(real, chance)
    asker = Asker(chance, f"expiry-{time.time_ns()}/", 0)
    lease, key = asker.leases[0], b64(asker.prefix.encode())
    link, twin = Real(real), Modelled(cluster, host)

    def both(path: str, body: str) -> None:
        asked = framed(path, body)
        [expected], [answered] = link.ask([asked], 1), twin.ask([asked])
        assert levelled(answered) == levelled(expected), asked

    both("/v3/lease/grant", f'{{"ID":{lease},"TTL":0}}')
    both("/v3/kv/put", f'{{"key":"{key}","lease":{lease}}}')
    both("/v3/lease/keepalive", f'{{"ID":{lease}}}')
    time.sleep(2.2)  # a second for the lease, half a second until etcd looks, and some for its neighbours
    both("/v3/lease/keepalive", f'{{"ID":{lease}}}')
    both("/v3/lease/timetolive", f'{{"ID":{lease},"keys":true}}')
    both("/v3/kv/range", f'{{"key":"{key}"}}')
    both("/v3/lease/revoke", f'{{"ID":{lease}}}')
    link.close()


def test_a_full_server_refuses_alike(real: Member) -> None:
    cluster, host = model_of(real, Random(0))
    link, twin = Real(real), Modelled(cluster, host)
    asked = [
        framed("/v3/maintenance/alarm", '{"action":"ACTIVATE","alarm":"NOSPACE"}'),
        framed("/v3/kv/put", '{"key":"YQ=="}'),
        framed("/v3/lease/grant", '{"ID":7,"TTL":20}'),
        framed("/v3/kv/txn", '{"success":[{"request_txn":{"failure":[{"request_put":{"key":"YQ=="}}]}}]}'),
        framed("/v3/kv/txn", '{"success":[{"request_range":{"key":"YQ=="}}]}'),
        framed("/v3/kv/deleterange", '{"key":"YQ=="}'),
        framed("/v3/maintenance/alarm", "{}"),
        framed("/v3/maintenance/alarm", '{"action":2,"alarm":1}'),
        framed("/v3/kv/put", '{"key":"YQ=="}'),
        framed("/v3/kv/deleterange", '{"key":"YQ=="}'),
    ]
    expected, answered = link.ask(asked, len(asked)), twin.ask(asked)
    assert [levelled(each) for each in answered] == [levelled(each) for each in expected]
    link.close()


def test_the_client_of_today_locks_hands_over_and_releases_at_the_model() -> None:
    host = RealTime(Random(1))
    with (
        serving(EtcdCluster([host]).members[0], host) as port,
        holdfast.connect(f"etcd://127.0.0.1:{port}") as one,
        holdfast.connect(f"etcd://127.0.0.1:{port}") as other,
        ThreadPoolExecutor(1) as pool,
    ):
        first = one.lock("door").acquire()
        assert other.lock("door").try_acquire() is None
        waiter = pool.submit(lambda: other.lock("door").acquire(timeout=TIMEOUT_S))
        while not any(view.waiters for view in one.survey()):
            time.sleep(0.01)
        assert first.release()
        second = waiter.result(TIMEOUT_S)
        assert second.token > first.token
        assert second.release()
        assert one.lock("door").try_acquire() is not None
