"""The outbox relay: what was committed is published, at least once, in order per stream, by one relay at a time."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.errors import Misconfigured
from holdfast.log import ANY, Consumer, EventData, Position, RecordedEvent, Relay, append, tail
from holdfast.log.redis.keys import cursors_key
from holdfast.log.relay_queue import RelayQueue
from tests.log.databases import Database, everywhere, execute, new_sqlite

WAIT_S = 120.0


def fill(database: Database, count: int = 12) -> None:
    with closing(database.open()) as connection:
        for number in range(count):
            append(connection, f"s{number % 3}", EventData("happened", number, id=f"e{number}"), expected=ANY)
        connection.commit()


def left(database: Database) -> list[int]:
    """What the relay has not acknowledged."""
    with closing(database.open()) as connection:
        if database.engine == "redis":  # where a claim stays
            cursor = connection.hget(cursors_key("outbox"), "0") or b"0-0"
            return [
                event.data for event in tail(connection, after=Position.parse(cursor.decode()), allow_truncated=True)
            ]
        return [event.data for event in Consumer(connection, "outbox", lease=2**63 - 1).poll()]


def relayed(
    database: Database, publish: Callable[[RecordedEvent], object], stop: threading.Event, folder: Path, **options: Any
) -> None:
    with holdfast.connect(f"sqlite:///{folder}/locks.db") as locks:
        timer = threading.Timer(WAIT_S, stop.set)
        timer.start()
        options = {"lock": locks.lock("outbox", ttl=30), "base": 0.001, "idle": 0.01, **options}
        try:
            Relay(database.open, publish, **options).run(stop)
        finally:
            timer.cancel()


@everywhere
def test_everything_is_published_once_and_in_order(database: Database, tmp_path: Path) -> None:
    fill(database)
    stop, seen = threading.Event(), []

    def publish(event: RecordedEvent) -> None:
        seen.append(event.data)
        if len(seen) == 12:
            fill(database, 6)  # the same ids: nothing new
            with closing(database.open()) as connection:
                append(connection, "s9", EventData("happened", 12), expected=ANY)
                connection.commit()
        if len(seen) == 13:
            stop.set()

    relayed(database, publish, stop, tmp_path, limit=5)
    assert seen == list(range(13))
    assert left(database) == []


@everywhere
def test_it_stops_after_the_event_in_hand(database: Database, tmp_path: Path) -> None:
    fill(database)
    stop, seen = threading.Event(), []

    def publish(event: RecordedEvent) -> None:
        seen.append(event.data)
        if len(seen) == 4:
            stop.set()

    relayed(database, publish, stop, tmp_path)
    assert seen == [0, 1, 2, 3]
    assert left(database) == list(range(4, 12))


@everywhere
def test_a_failure_holds_up_its_stream_only(database: Database, tmp_path: Path) -> None:
    fill(database)
    stop = threading.Event()
    seen: list[int] = []
    failures: list[list[int]] = []

    def publish(event: RecordedEvent) -> None:
        if event.data == 4 and len(failures) < 5:
            failures.append([*seen])
            raise OSError("the broker is away")
        seen.append(event.data)
        if len(seen) == 12:
            stop.set()

    relayed(database, publish, stop, tmp_path, base=0.02)
    assert len(failures) == 5
    assert sorted(seen) == list(range(12))
    for stream in range(3):
        assert [n for n in seen if n % 3 == stream] == list(range(stream, 12, 3))
    assert not {7, 10} & set(failures[-1])
    assert max(map(len, failures)) > 4, "the others go on"
    assert left(database) == []


@everywhere
def test_or_it_stops_as_asked(database: Database, tmp_path: Path) -> None:
    fill(database)
    seen = []

    def publish(event: RecordedEvent) -> None:
        if event.data == 4:
            raise OSError("the broker is away")
        seen.append(event.data)

    with pytest.raises(OSError, match="broker"):
        relayed(database, publish, threading.Event(), tmp_path, on_failure="stop")
    assert seen == [0, 1, 2, 3]
    assert left(database) == list(range(4, 12)), "what was published is acknowledged"


def test_a_database_that_fails_is_tried_again(database: Database, tmp_path: Path) -> None:
    fill(database)
    stop, seen, opened = threading.Event(), [], []

    def connect() -> Any:
        opened.append(1)
        if len(opened) < 3:
            raise ConnectionError("the database is away")
        connection = database.open()
        if len(opened) == 3:
            connection.close()  # and this one dies at its first statement
        return connection

    def publish(event: RecordedEvent) -> None:
        seen.append(event.data)
        if len(seen) == 12:
            stop.set()

    with holdfast.connect(f"sqlite:///{tmp_path}/locks.db") as locks:
        Relay(connect, publish, lock=locks.lock("outbox", ttl=30), base=0.001).run(stop)
    assert seen == list(range(12))
    assert len(opened) == 4


@everywhere
def test_one_relay_at_a_time(database: Database, tmp_path: Path) -> None:
    fill(database)
    stop, seen = threading.Event(), []
    inside = threading.Semaphore(1)

    def publish(event: RecordedEvent) -> None:
        assert inside.acquire(blocking=False)
        seen.append(event.data)
        if len(seen) >= 12:
            stop.set()
        inside.release()

    threads = [threading.Thread(target=relayed, args=(database, publish, stop, tmp_path)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert seen == list(range(12))


CRASH = """
import json, os, signal, sys, threading
import holdfast
from holdfast.log import Relay
from tests.log.databases import open_connection

engine, address, locks_url, out, count = json.loads(sys.argv[1])
seen = 0

def publish(event):
    global seen
    with open(out, "a") as file:
        file.write(json.dumps([event.stream, event.version, event.id]) + "\\n")
    seen += 1
    if seen == count:
        os.kill(os.getpid(), signal.SIGKILL)

locks = holdfast.connect(locks_url)
relay = Relay(lambda: open_connection(engine, *address), publish, lock=locks.lock("outbox", ttl=1), limit=2)
relay.run(threading.Event())
"""


@everywhere
def test_a_crash_between_publish_and_acknowledge_publishes_again(database: Database, tmp_path: Path) -> None:
    """Killed after every third event, of which two are acknowledged. The receiver knows an event by its id."""
    fill(database)
    out = tmp_path / "out"
    for _ in range(4):
        case = [database.engine, database.address, f"sqlite:///{tmp_path}/locks.db", str(out), 3]
        done = subprocess.run(
            [sys.executable, "-c", CRASH, json.dumps(case)], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == -9, done.stderr
    assert left(database) == [8, 9, 10, 11]
    stop = threading.Event()
    lines = [json.loads(line) for line in out.read_text().splitlines()]

    def publish(event: RecordedEvent) -> None:
        lines.append([event.stream, event.version, event.id])
        if event.data == 11:
            stop.set()

    relayed(database, publish, stop, tmp_path)
    assert {name for _, _, name in lines} == {f"e{n}" for n in range(12)}
    assert len(lines) == 16, "at least once, and four were published again"
    known: dict[str, None] = {}
    for stream, version, _ in lines:
        if f"{stream}/{version}" not in known:
            assert version == 1 or f"{stream}/{version - 1}" in known, "in order per stream"
        known[f"{stream}/{version}"] = None


def test_a_queue_goes_no_further_than_it_may_acknowledge() -> None:
    def event(number: int, stream: str) -> RecordedEvent:
        return RecordedEvent(Position(number, 0), stream, number, f"e{number}", "happened", number)

    def due(now: float) -> RecordedEvent:
        found = queue.due(now)
        assert found is not None
        return found

    queue = RelayQueue(1.0, 10.0)
    queue.feed([event(1, "a"), event(2, "b"), event(3, "a"), event(4, "b")])
    queue.published(due(0))
    assert queue.acknowledgeable() == Position(1, 0)
    assert queue.failed(due(0), 0.0, 0.5) == 1
    queue.published(due(0))
    assert queue.due(-1.0) is None
    assert queue.acknowledgeable() == Position(1, 0)
    queue.acknowledged(Position(1, 0))
    assert (len(queue), queue.acknowledgeable()) == (3, None)
    assert queue.failed(due(100), 100.0, 1.0) == 2
    queue.published(due(200))
    assert queue.acknowledgeable() == Position(3, 0)
    queue.published(due(200))
    assert queue.acknowledgeable() == Position(4, 0)
    assert (queue.due(300), queue.next_at()) == (None, None)


def test_streams_that_are_held_up_take_turns_with_the_others() -> None:
    """Each try takes so long that another stream's is due by then: the others go on all the same."""
    queue = RelayQueue(0.0, 0.0)
    queue.feed(RecordedEvent(Position(n, 0), s, n, f"e{n}", "t", n) for n, s in enumerate("abababxyxy", 1))
    tried = []
    for now in range(20):
        event = queue.due(float(now))
        assert event is not None
        tried.append(event.stream)
        if event.stream in "ab":
            queue.failed(event, float(now), 0.0)
        else:
            queue.published(event)
    assert "".join(stream for stream in tried if stream in "xy") == "xyxy"
    assert {"a", "b"} == set(tried[-2:])


def test_bad_input(tmp_path: Path) -> None:
    with holdfast.connect("memory://relay") as locks:
        lock = locks.lock("outbox", ttl=10)
        good: dict[str, Any] = {"connect": lambda: None, "publish": print, "lock": lock}
        for bad in (
            {"connect": None},
            {"publish": "x"},
            {"lock": "outbox"},
            {"on_failure": "ignore"},
            {"limit": 0},
            {"window": 10},
            {"idle": -1},
            {"base": float("nan")},
            {"name": ""},
        ):
            with pytest.raises(Misconfigured):
                Relay(**{**good, **bad})


@everywhere
def test_truncated_ends_the_relay(database: Database, tmp_path: Path) -> None:
    """It would skip events in silence."""
    from holdfast.log import Truncated, truncate

    fill(database)
    with closing(database.open()) as connection:
        truncate(connection, "s0", before=2)
        connection.commit()
        if database.engine != "redis":
            assert execute(connection, "SELECT 1")
    with pytest.raises(Truncated):
        relayed(database, print, threading.Event(), tmp_path)
    stop, seen = threading.Event(), []

    def publish(event: RecordedEvent) -> None:
        seen.append(event.data)
        if event.data == 11:
            stop.set()

    relayed(database, publish, stop, tmp_path, allow_truncated=True)
    assert seen == list(range(1, 12))


def test_what_a_coroutine_function_has_not_done_is_not_published(tmp_path: Path) -> None:
    """Called without `await` it does nothing: to go on would lose every event."""
    database = new_sqlite(tmp_path)
    fill(database, 1)

    async def publish(event: RecordedEvent) -> None: ...

    with pytest.raises(Misconfigured, match="never awaited"):
        relayed(database, publish, threading.Event(), tmp_path)
    with pytest.raises(Misconfigured, match="has done nothing yet"):
        relayed(database, lambda event: publish(event), threading.Event(), tmp_path, on_failure="stop")
    with pytest.raises(Misconfigured, match=r"a threading\.Event"):
        relayed(database, print, asyncio.Event(), tmp_path)  # type: ignore[arg-type]
    assert left(database) == [0]
