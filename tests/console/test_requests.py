"""The JSON behind the page: the same data, live, and nothing that should not be in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from tests.cli.harness import LONG, eventually
from tests.console.served import Served, pictures, served


@pytest.fixture
def locks() -> Iterator[holdfast.Coordinator]:
    with holdfast.connect("memory://console-requests") as locks:
        yield locks


@pytest.fixture
def console(locks: holdfast.Coordinator) -> Iterator[Served]:
    with served(locks, "memory://console-requests", limits=("mail=1/h,burst=4",)) as console:
        yield console


def waiting(locks: holdfast.Coordinator, name: str, count: int) -> None:
    eventually(lambda: sum(len(view.waiters) for view in locks.survey(name)) == count)


def test_what_is_told_is_what_the_engine_says(locks: holdfast.Coordinator, console: Served) -> None:
    with locks.lock("orders/7", ttl=30) as lease:
        waiter = threading.Thread(target=lambda: locks.lock("orders/7", timeout=LONG).acquire().release())
        waiter.start()
        waiting(locks, "orders/7", 1)
        console.seen()
        (row,) = console.get("/api/locks?prefix=orders/").json["locks"]
        assert (row["name"], row["holder_count"], row["waiter_count"]) == ("orders/7", 1, 1)
        assert row["holders"][0]["token"] == str(lease.token)
        lock = console.get("/api/lock?name=orders/7").json
        (view,) = locks.survey("orders/7", exact=True)
        assert [(claim["owner"], claim["place"]) for claim in lock["waiters"]] == [(view.waiters[0].owner, 1)]
        assert [hold["token"] for hold in lock["timeline"]["holds"]] == [str(lease.token)]
        assert console.get("/api/status").json["waiting"] == 1
    waiter.join()
    console.seen()
    assert console.get("/api/locks").json == {"total": 0, "offset": 0, "locks": []}
    ended = console.get("/api/lock?name=orders/7").json
    assert not ended["present"]
    assert next(hold["outcome"] for hold in ended["timeline"]["holds"]) == "ended"


def test_a_stream_tells_changes_as_they_come(locks: holdfast.Coordinator, console: Served) -> None:
    with console.stream("/api/stream?of=locks&prefix=live/") as stream:
        assert stream.getheader("content-type") == "text/event-stream"
        messages = pictures(stream)
        assert next(messages)["data"]["total"] == 0
        with locks.lock("live/1") as lease:
            shown = next(each["data"]["locks"] for each in messages if each["data"]["total"])
            assert shown[0]["holders"][0]["token"] == str(lease.token)
        assert next(each for each in messages if not each["data"]["total"])["of"] == "locks"


def test_a_stream_of_another_part_is_refused_before_it_begins(console: Served) -> None:
    for query, words in (("of=secrets", "there are: locks"), ("limit=x", "whole number"), ("of=lock", "name")):
        answer = console.get(f"/api/stream?{query}")
        assert answer.status == 400
        assert words in answer.json["problem"]


def test_streams_are_counted_and_bounded(console: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.console.api.MAX_STREAMS_COUNT", 1)
    with console.stream("/api/stream") as stream:
        next(pictures(stream))
        assert console.get("/api/stream").status == 503

    def served_again() -> bool:
        with console.stream("/api/stream") as again:
            return again.status == 200

    eventually(served_again)  # whoever went away no longer counts


def test_elections_limits_and_partitions_are_there(locks: holdfast.Coordinator, console: Served) -> None:
    over = threading.Event()
    leader = threading.Thread(target=lambda: locks.election("scheduler").run(lambda lease: over.wait(LONG), stop=over))
    leader.start()
    with (
        locks.semaphore("transcode", permits=3),
        locks.rwlock("catalogue").read(),
        locks.partitions("ingest", shards=4),
    ):
        eventually(lambda: len(locks.survey("ingest/shards/")) == 4 and bool(locks.survey("scheduler")))
        console.seen()
        (election,) = console.get("/api/elections").json["elections"]
        assert (election["name"], election["holder_count"], election["leaders_seen"]) == ("scheduler", 1, 1)
        shown = console.get("/api/limits").json["limits"]
        found = {limit["name"]: (limit["kind"], limit["used"]) for limit in shown}
        assert found == {"transcode": ("semaphore", 1), "catalogue": ("read-write", 1)}
        (partition,) = console.get("/api/partitions").json["partitions"]
        assert (partition["shards"], partition["member_count"], partition["members"][0]["owns"]) == (4, 1, 4)
    over.set()
    leader.join()


def test_a_rate_limit_is_looked_at_and_nothing_is_spent(locks: holdfast.Coordinator, console: Served) -> None:
    limiter = locks.limiter("mail", "1/h", burst=4)
    assert limiter.try_acquire()

    def used() -> float:
        (rate,) = console.get("/api/limits").json["rates"]
        assert rate["problem"] is None
        return float(rate["used"] or 0)

    eventually(lambda: 0.9 < used() <= 1)
    assert [limiter.try_acquire() for _ in range(4)] == [True, True, True, False]
    eventually(lambda: used() > 3.9)
    (rate,) = console.get("/api/limits").json["rates"]
    assert 3500 < rate["wait"] <= 3600


def test_the_doctors_findings_are_there(console: Served) -> None:
    eventually(lambda: console.get("/api/health").json["report"] is not None)
    report = console.get("/api/health").json["report"]
    assert "engine.reachable" in {finding["id"] for finding in report["findings"]}


def test_the_metrics_of_the_engine_have_their_limits(locks: holdfast.Coordinator, console: Served) -> None:
    with locks.lock("orders/7"):
        console.seen()
        engine = console.get("/api/metrics").json["engine"]
    limits = {verdict["rule"]: verdict["limit"] for verdict in engine["verdicts"]}
    assert limits == {"acquisition": 0.5, "contention": 0.3, "hold": 0.8, "timeouts": 0.05, "refusals": 0}
    assert [family["family"] for family in engine["families"]] == ["orders/*"]


def test_the_password_of_the_engine_is_nowhere(locks: holdfast.Coordinator) -> None:
    with served(locks, "redis://admin:hunter2@127.0.0.1:1/0?password=hunter2") as console:
        eventually(lambda: console.get("/api/health").json["report"] is not None)
        paths = ("/", "/api/status", "/api/health", "/api/locks", "/api/metrics", "/api/session")
        answers = [console.get(path) for path in paths]
        assert b"127.0.0.1:1" in answers[1].body
        assert not [path for path, answer in zip(paths, answers, strict=True) if b"hunter2" in answer.body]


def test_an_engine_that_goes_away_is_told_with_what_was_seen(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/locks.db"
    with holdfast.connect(url) as locks, locks.lock("orders/7"):
        other = holdfast.connect(url)
        with served(other, url) as console:
            other.close()
            eventually(lambda: console.get("/api/status").json["problem"] is not None)
            assert console.get("/api/locks").json["total"] == 1


def test_a_name_that_nobody_has_put_right_is_told(locks: holdfast.Coordinator, console: Served) -> None:
    def body() -> None:
        lease = locks.lock("ledger", ttl=30, recover=lambda lease, before: None).acquire()
        assert locks.evict("ledger", lease.token)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    console.seen()
    lock = console.get("/api/lock?name=ledger").json
    (view,) = locks.survey("ledger")
    assert view.unrecovered is not None
    assert lock["unrecovered"] == {
        "token": str(view.unrecovered.token),
        "owner": view.unrecovered.owner,
        "ended": "evicted",
    }
