"""Records on both engines: what `holdfast.record` says, also when many write at once and replies are lost."""

from __future__ import annotations

import asyncio
import random
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import holdfast
from holdfast._core.flow import Flow
from holdfast.errors import OutcomeUnknown
from holdfast.record import MAX_KEY_BYTES, MAX_RECORD_BYTES
from tests.redis.proxy import proxied
from tests.relational.house import House
from tests.support.record_checks import CHECKS, RecordClient


def client_of(locks: holdfast.Coordinator) -> RecordClient:
    return RecordClient(locks._engine.backend, locks._run)


def count(house: House, url: str) -> int:
    return int(house.execute(url, "SELECT count(*) FROM holdfast_record")[0][0])


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_records(url: str, check: Callable[[RecordClient], None]) -> None:
    with holdfast.connect(url, require={"records"}) as locks:
        check(client_of(locks))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_records_with_asyncio(url: str, check: Callable[[RecordClient], None]) -> None:
    with asyncio.Runner() as runner:

        async def open_it() -> holdfast.aio.Coordinator:
            return await holdfast.aio.connect(url)

        locks = runner.run(open_it())

        def run(flow: Flow[Any]) -> Any:
            async def carry_out() -> Any:
                return await locks._run(flow)

            return runner.run(carry_out())

        check(RecordClient(locks._engine.backend, run))
        runner.run(locks.close())


def test_the_longest_key_and_the_largest_record(url: str) -> None:
    with holdfast.connect(url, namespace="n" * 500) as locks:
        records = client_of(locks)
        data = random.Random(7).randbytes(MAX_RECORD_BYTES)
        for key in ("k" * MAX_KEY_BYTES, "\U0010ffff" * (MAX_KEY_BYTES // 4)):
            assert records.swap(key, 0, data).done
            found = records.read(key)
            assert found is not None
            assert found.data == data
            assert records.keys(key[:5]) == [key]
        assert records.swap("empty", 0, b"").done
        assert records.swap("empty", 0, b"x").record == records.read("empty")


def test_keys_are_in_the_order_of_code_points(url: str) -> None:
    keys = sorted(
        {"a", "A", "aa", "a\ud7ff", "a\ue000", "a\U0010ffff", "a\U0010ffffb", "b", "B", "é", "e", "'", '"', "\\"}
    )
    with holdfast.connect(url) as locks, holdfast.connect(url, namespace="other") as others:
        records = client_of(locks)
        for key in keys:
            assert records.swap(key, 0, b"x").done
            assert client_of(others).swap(key, 0, b"y").done
        assert records.keys("") == keys
        assert records.keys("a") == [key for key in keys if key.startswith("a")]
        assert records.keys("a\U0010ffff") == ["a\U0010ffff", "a\U0010ffffb"]
        assert records.keys("a\ud7ff") == ["a\ud7ff"]


def test_as_the_reference_does(house: House, url: str) -> None:
    """The same requests to the engine in memory: the same replies, but for the versions themselves."""
    chance = random.Random(12)
    with holdfast.connect(url) as locks, holdfast.connect(f"memory://{house.scheme}-reference") as reference:
        both = client_of(locks), client_of(reference)
        for _ in range(300):
            key = f"k{chance.randrange(3)}"
            owner, stale, new = chance.choice(["me", "you"]), chance.random() < 0.3, chance.randbytes(3)
            data = None if chance.random() < 0.2 else new
            kind = chance.random()
            told = []
            for records in both:
                if kind < 0.2:
                    told.append([records.touch((key, owner), (key, "me"), (key, "me"), ttl=600), records.keys("k")])
                    continue
                there = records.read(key)
                expected = 0 if stale or there is None else there.version
                swapped = records.swap(key, expected, data, owner, ttl=600 if stale else 0)
                if swapped.done and swapped.record is not None and there is not None:
                    assert swapped.record.version > there.version
                last = swapped.record
                told.append(
                    [swapped.done, last and (last.data, last.owner, last.remaining > 0), records.read(key) == last]
                    if last is None or not last.remaining
                    else [swapped.done, last.data, last.owner]
                )
            assert told[0] == told[1]


THREADS, SWAPS = 6, 25


def test_no_update_is_lost_and_versions_grow(url: str) -> None:
    """Threads with a connection each count up in one record, which is also deleted and made anew."""
    seen: list[int] = []
    guard = threading.Lock()

    def count_up(number: int) -> int:
        chance = random.Random(number)
        done = 0
        with holdfast.connect(url, request_timeout=60) as locks:
            records = client_of(locks)
            while done < SWAPS:
                there = records.read("once:count")
                value = 0 if there is None else int(there.data or b"0")
                swapped = records.swap("once:count", 0 if there is None else there.version, b"%d" % (value + 1))
                if not swapped.done:
                    continue
                assert swapped.record is not None
                with guard:
                    seen.append(swapped.record.version)
                done += 1
                if chance.random() < 0.2:
                    gone = records.swap("once:gone", 0, b"x", keep=0.001).record
                    if gone is not None:
                        records.swap("once:gone", gone.version, None)
        return done

    with ThreadPoolExecutor(THREADS) as pool:
        assert sum(pool.map(count_up, range(THREADS))) == THREADS * SWAPS
    with holdfast.connect(url) as locks:
        there = client_of(locks).read("once:count")
    assert there is not None
    assert there.data == b"%d" % (THREADS * SWAPS)
    assert len(set(seen)) == len(seen)
    assert there.version == max(seen)


def test_one_of_many_makes_a_new_record_and_a_deleted_one_comes_back_higher(url: str) -> None:
    """Threads race to make the same record, the winner deletes it: never two winners, versions grow all the time."""
    won: list[int] = []
    holding = threading.Lock()

    def race(_: int) -> None:
        with holdfast.connect(url, request_timeout=60) as locks:
            records = client_of(locks)
            wins = 0
            while wins < SWAPS:
                swapped = records.swap("once:race", 0, b"mine")
                if not swapped.done:
                    continue
                wins += 1
                assert swapped.record is not None
                assert holding.acquire(blocking=False), "two have made it"
                won.append(swapped.record.version)
                holding.release()
                assert records.swap("once:race", swapped.record.version, None).done

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(race, range(THREADS)))
    assert won == sorted(set(won))


def test_what_is_forgotten_does_not_pile_up(house: House, url: str) -> None:
    """Writers of records that are over at once, and touches, all at the same time: nobody waits in a circle."""

    def write(number: int) -> None:
        with holdfast.connect(url, request_timeout=60) as locks:
            records = client_of(locks)
            mine = [f"once:kept:{other}:{number}" for other in range(5)]
            for key in mine:
                records.swap(key, 0, b"x", str(number), ttl=600)
            for step in range(60):
                assert records.swap(f"once:{number}:{step}", 0, b"x", keep=0.000001).done
                if step % 5 == 0:
                    assert all(records.touch(*((key, str(number)) for key in mine)))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(write, range(THREADS)))
    assert count(house, url) < THREADS * 5 + 60
    with holdfast.connect(url) as locks:
        records = client_of(locks)
        for _ in range(60):
            records.swap("once:last", 0, b"x", keep=0.000001)
        assert count(house, url) <= THREADS * 5 + 1
        assert len(records.keys("once:kept:")) == THREADS * 5


def test_a_swap_is_not_held_up_by_somebody_elses_lock_on_what_is_to_be_forgotten(house: House, url: str) -> None:
    with holdfast.connect(url, request_timeout=60) as locks:
        records = client_of(locks)
        assert records.swap("once:over", 0, b"x", keep=0.000001).done
        with house.locking(url, "SELECT name FROM holdfast_record WHERE name = 'holdfast/once:over' FOR UPDATE"):
            assert records.swap("once:new", 0, b"x").done
        assert count(house, url) == 2
        records.swap("once:newer", 0, b"x")
        assert sorted(records.keys("once:")) == ["once:new", "once:newer"]
        assert count(house, url) == 2


def test_a_lost_reply_is_unknown_and_nothing_is_written_twice(url: str) -> None:
    port = int(re.findall(r":(\d+)/", url)[0])
    with proxied(port) as proxy, holdfast.connect(url) as others:
        records = client_of(others)
        with holdfast.connect(url.replace(f":{port}/", f":{proxy.port}/"), request_timeout=2) as locks:
            cut_off = client_of(locks)
            first = cut_off.swap("once:lost", 0, b"one").record
            assert first is not None
            proxy.loss = 1.0
            with pytest.raises(OutcomeUnknown):
                cut_off.swap("once:lost", first.version, b"two")
            proxy.loss = 0.0
            found = records.read("once:lost")
            assert found is not None
            assert found.data == b"two"
            assert not cut_off.swap("once:lost", first.version, b"two").done
