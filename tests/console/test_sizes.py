"""10,000 locks, and 1,000 who wait for one of them: what is sent and remembered stays small."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from holdfast.console import figures, groups, pictures
from holdfast.console.history import MAX_ENTRIES_COUNT, MAX_ENTRIES_PER_NAME_COUNT, SurveyHistory
from holdfast.console.pictures import MAX_PAGE_COUNT, PageOf
from holdfast.console.service import encode
from holdfast.console.snapshot import MAX_CACHED_COUNT, SurveySnapshot
from holdfast.console.watcher import Watcher
from holdfast.errors import Misconfigured
from holdfast.model import ClaimView, LockView
from holdfast.observe.families import MAX_FAMILIES_COUNT

HOLD = ClaimView("a-1", 7, 1, "db1", 11, since=0.0, remaining=10.0, age=5.0)
NAMES_COUNT, WAITERS_COUNT = 10_000, 1_000
MAX_MESSAGE_BYTES = 150_000


@pytest.fixture(scope="module")
def watcher() -> Watcher:
    views = [LockView(f"orders/{number:05}/{'x' * 400}", 1, (HOLD,), ()) for number in range(NAMES_COUNT - 1)]
    waiters = tuple(
        replace(HOLD, owner=f"w-{number}", token=None, age=float(number)) for number in range(WAITERS_COUNT)
    )
    watcher = Watcher(lambda: [*views, LockView("popular", 1, (HOLD,), waiters)], 1.0)
    watcher.look()
    return watcher


def size(data: object) -> int:
    return len(encode(data).encode())


def test_a_page_of_names_is_small_whatever_is_asked_for(watcher: Watcher) -> None:
    snapshot = watcher.snapshot
    page = pictures.locks(snapshot, watcher, PageOf.read({"limit": "999999"}))
    assert page["total"] == NAMES_COUNT
    assert len(page["locks"]) == MAX_PAGE_COUNT
    assert size(pictures.locks(snapshot, watcher, PageOf())) < MAX_MESSAGE_BYTES


def test_every_name_is_on_some_page(watcher: Watcher) -> None:
    seen: list[str] = []
    while page := pictures.locks(watcher.snapshot, watcher, PageOf(offset=len(seen), limit=MAX_PAGE_COUNT))["locks"]:
        seen += [lock["name"] for lock in page]
    assert seen == sorted(seen)
    assert len(set(seen)) == NAMES_COUNT


def test_waiters_come_in_pages_with_their_places(watcher: Watcher) -> None:
    query = {"name": "popular", "offset": "900", "limit": "1000"}
    lock = pictures.lock(watcher.snapshot, watcher, PageOf.read(query))
    assert lock["waiter_count"] == WAITERS_COUNT
    assert [claim["place"] for claim in lock["waiters"]] == list(range(901, 1001))
    assert size(lock) < MAX_MESSAGE_BYTES


@pytest.mark.parametrize("make", [groups.partitions, groups.elections, groups.limits])
def test_groups_are_small(watcher: Watcher, make: object) -> None:
    assert size(make(watcher.snapshot, watcher, PageOf())) < MAX_MESSAGE_BYTES  # type: ignore[operator]


def test_figures_are_by_family(watcher: Watcher) -> None:
    data = figures.metrics(watcher.snapshot, watcher, None)
    assert len(data["engine"]["families"]) <= MAX_FAMILIES_COUNT + 1
    assert size(data) < MAX_MESSAGE_BYTES


def test_a_partition_with_many_members_and_shards_is_cut() -> None:
    shards = [
        LockView(
            f"ingest/shards/100000/{number}", 1, (replace(HOLD, owner=f"{number % 500:016x}-1", mode="shard"),), ()
        )
        for number in range(0, 20_000, 2)
    ]
    snapshot = SurveySnapshot(1, shards)
    data = groups.partitions(snapshot, Watcher(list, 1.0), PageOf())
    (partition,) = data["partitions"]
    assert len(partition["members"]) <= MAX_PAGE_COUNT + 2
    assert size(data) < MAX_MESSAGE_BYTES


def test_a_survey_is_compared_in_one_pass_and_holds_are_not_copied() -> None:
    history = SurveyHistory()
    views = [LockView(f"n{number}", 1, (HOLD,), ()) for number in range(NAMES_COUNT)]
    for turn in range(7):
        holder = replace(HOLD, token=turn + 1)
        history.see([replace(view, holders=(holder,)) for view in views], at=100.0 + turn)
    assert history.size == MAX_ENTRIES_COUNT
    assert len(history.of("n1")[0]) <= MAX_ENTRIES_PER_NAME_COUNT


def test_many_searches_do_not_fill_the_memory() -> None:
    snapshot = SurveySnapshot(1, [LockView(f"n{number}", 1, (), ()) for number in range(100)])
    for number in range(2 * MAX_CACHED_COUNT):
        snapshot.find(f"n{number}", "waiting", 0, 10)
    assert len(snapshot._kept) <= MAX_CACHED_COUNT


def test_orders_and_prefixes_are_right(watcher: Watcher) -> None:
    assert pictures.locks(watcher.snapshot, watcher, PageOf(sort="waiting"))["locks"][0]["name"] == "popular"
    found = pictures.locks(watcher.snapshot, watcher, PageOf(prefix="orders/0001"))
    assert found["total"] == 10
    assert all(lock["name"].startswith("orders/0001") for lock in found["locks"])
    highest = "a\U0010ffff"
    odd = SurveySnapshot(1, [LockView(name, 1, (), ()) for name in ("a", highest, "a\U0010ffff\U0010ffff", "b")])
    assert odd.find(highest, "name", 0, 10)[0] == 2
    with pytest.raises(Misconfigured, match="sort"):
        watcher.snapshot.find("", "colour", 0, 1)


@pytest.mark.parametrize("query", [{"offset": "-1"}, {"limit": "many"}, {"offset": "1" * 5000}, {"limit": "٣"}])
def test_an_odd_page_is_told(query: dict[str, str]) -> None:
    with pytest.raises(Misconfigured, match="whole number"):
        PageOf.read(query)


def test_what_the_engine_does_not_know_is_no_number() -> None:
    endless = replace(HOLD, remaining=float("inf"))
    watcher = Watcher(lambda: [LockView("x", 1, (endless,), ())], 1.0)
    watcher.look()
    (lock,) = pictures.locks(watcher.snapshot, watcher, PageOf())["locks"]
    assert json.loads(encode(lock))["holders"][0]["remaining"] is None
