"""A consumer's cursor: one member at a time, never back, in the transaction of what was done for the events."""

from __future__ import annotations

import asyncio
import json
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.errors import FenceRejected, Misconfigured
from holdfast.log import (
    ANY,
    NONE,
    START,
    AlreadyAcknowledged,
    Consumer,
    EventData,
    Position,
    aio,
    append,
    read,
    tail,
)
from tests.log.databases import Database, everywhere, execute


def fill(database: Database, *streams: str) -> Any:
    connection = database.connect()
    for number, stream in enumerate(streams):
        append(connection, stream, EventData("happened", number, id=f"e{number}"), expected=ANY)
    connection.commit()
    return connection


def polled(consumer: Consumer, limit: int = 100) -> list[Any]:
    return [event.data for event in consumer.poll(limit)]


def test_events_come_again_until_they_are_acknowledged(database: Database) -> None:
    connection = fill(database, "a", "b", "a", "c")
    consumer = Consumer(connection, "billing", lease=5)
    assert polled(consumer, 3) == polled(consumer, 3) == [0, 1, 2]
    events = consumer.poll()
    assert [event.data for event in consumer.poll(after=events[1].position)] == [2, 3]
    consumer.acknowledge(events[1].position)
    assert polled(consumer) == [2, 3]
    connection.rollback()
    assert polled(consumer) == [0, 1, 2, 3], "the cursor falls with the transaction"
    consumer.acknowledge(events[3].position)
    assert consumer.cursor() == events[3].position
    connection.commit()
    assert polled(consumer) == []
    assert polled(Consumer(connection, "shipping", lease=1)) == [0, 1, 2, 3]
    connection.commit()


@everywhere
def test_a_cursor_never_goes_back(database: Database) -> None:
    connection = fill(database, "a", "b", "c")
    consumer = Consumer(connection, "billing", lease=5)
    events = consumer.poll()
    consumer.acknowledge(events[1].position)
    connection.commit()
    for event in events[:2]:
        with pytest.raises(AlreadyAcknowledged, match="roll back") as caught:
            consumer.acknowledge(event.position)
        assert pickle.loads(pickle.dumps(caught.value)).cursor == events[1].position
        connection.rollback()
    assert polled(consumer) == [2]
    beyond = Position(events[2].position.major + 10**6, 0)
    for wrong in (beyond, START):
        with pytest.raises((Misconfigured, AlreadyAcknowledged)):
            consumer.acknowledge(wrong)
        connection.rollback()
    assert polled(consumer) == [2]


@everywhere
def test_a_zombie_is_refused(database: Database) -> None:
    connection = fill(database, "a", "b", "c")
    zombie, heir = Consumer(connection, "billing", lease=5), Consumer(database.connect(), "billing", lease=6)
    first = zombie.poll(1)
    connection.commit()
    assert [event.data for event in heir.poll(2)] == [0, 1], "claimed before it reads"
    heir._connection.commit()
    for call in (lambda: zombie.acknowledge(first[0].position), zombie.poll, zombie.cursor):
        with pytest.raises(FenceRejected, match="log-consumer/billing"):
            call()
        connection.rollback()
    heir.acknowledge(first[0].position)
    assert [event.data for event in heir.poll()] == [1, 2]
    heir._connection.commit()


def test_what_cannot_be_final_yet_is_not_acknowledged(postgresql: Database) -> None:
    """An event that is seen in its stream, behind a transaction that is held open."""
    connection = fill(postgresql, "a")
    held, late = postgresql.connect(), postgresql.connect()
    append(held, "b", EventData("happened"), expected=NONE)
    append(late, "c", EventData("happened"), expected=NONE)
    late.commit()
    consumer = Consumer(connection, "billing", lease=5)
    with pytest.raises(Misconfigured, match="no event"):
        consumer.acknowledge(read(connection, "c")[0].position)
    connection.rollback()
    held.commit()
    assert [event.stream for event in consumer.poll()] == ["a", "b", "c"]
    consumer.acknowledge(read(connection, "c")[0].position)


@pytest.mark.parametrize("engine", ["postgresql", "mariadb"])
def test_autocommit_is_refused(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    from tests.log.conftest import new_database

    database = new_database(engine, request, tmp_path)
    with database.stack:
        position = tail(fill(database, "a"))[0].position
        connection = database.connect()
        connection.autocommit(True) if engine == "mariadb" else connection.set_autocommit(True)
        consumer = Consumer(connection, "billing", lease=5)
        for call in (consumer.poll, lambda: consumer.acknowledge(position)):
            with pytest.raises(Misconfigured, match="autocommit"):
                call()


@pytest.mark.parametrize(
    "options",
    [
        {"name": ""},
        {"name": "x" * 201},
        {"lease": 0},
        {"lease": None},
        {"partitions": 0},
        {"partition": 3, "partitions": 3},
        {"partition": -1},
        {"partition": True},
    ],
)
def test_bad_input(tmp_path: Path, options: dict[str, Any]) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        with pytest.raises(Misconfigured):
            Consumer(connection, **{"name": "billing", "lease": 5, **options})
        consumer = Consumer(connection, "billing", lease=5)
        for call in (lambda: consumer.poll(0), lambda: consumer.acknowledge("1-2")):  # type: ignore[arg-type]
            with pytest.raises(Misconfigured):
                call()
        with pytest.raises(Misconfigured, match="pickled"):
            pickle.dumps(consumer)
        assert not connection.in_transaction


def test_a_consumer_with_asyncio(postgresql: Database) -> None:
    import psycopg

    fill(postgresql, "a", "b", "c")

    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(postgresql.address[0]) as connection:
            consumer = aio.Consumer(connection, "billing", lease=5)
            events = await consumer.poll(2)
            await consumer.acknowledge(events[-1].position)
            await connection.commit()
            assert [event.data for event in await consumer.poll()] == [2]
            assert await consumer.cursor() == events[-1].position
            with pytest.raises(AlreadyAcknowledged):
                await consumer.acknowledge(events[0].position)
            await connection.rollback()
            await aio.Consumer(connection, "billing", lease=6).poll()
            with pytest.raises(FenceRejected):
                await consumer.poll()

    asyncio.run(main())


MEMBER = """
import json, sys
import holdfast
from holdfast.errors import HoldfastError
from holdfast.log import Consumer
from tests.log.databases import execute, open_connection

engine, address, locks_url = json.loads(sys.argv[1])
connection = open_connection(engine, *address)
locks = holdfast.connect(locks_url)
lease = locks.lock("billing", ttl=2).acquire()
consumer = Consumer(connection, "billing", lease=lease)
events = consumer.poll()
connection.commit()
print(len(events), flush=True)
sys.stdin.readline()
try:
    for event in events:
        execute(connection, f"INSERT INTO effects VALUES ({event.data})")
    consumer.acknowledge(events[-1].position)
    connection.commit()
    print("done", flush=True)
except HoldfastError as error:
    connection.rollback()
    print(type(error).__name__, flush=True)
"""


def test_a_member_that_was_paused_comes_back_to_nothing(database: Database, tmp_path: Path) -> None:
    """A real process, stopped between its poll and its acknowledgement until another has taken over."""
    database.execute("CREATE TABLE effects (n integer)")
    connection = fill(database, *"abcde")
    locks_url = f"sqlite:///{tmp_path}/locks.db"
    case = json.dumps([database.engine, database.address, locks_url])
    with subprocess.Popen(
        [sys.executable, "-c", MEMBER, case], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as member:
        assert member.stdin is not None
        assert member.stdout is not None
        try:
            assert member.stdout.readline() == "5\n"
            member.send_signal(signal.SIGSTOP)
            with holdfast.connect(locks_url) as locks, locks.lock("billing", ttl=30) as lease:
                consumer = Consumer(connection, "billing", lease=lease)
                for event in consumer.poll():
                    execute(connection, f"INSERT INTO effects VALUES ({event.data})")
                    consumer.acknowledge(event.position)
                    connection.commit()
                member.send_signal(signal.SIGCONT)
                member.stdin.write("\n")
                member.stdin.flush()
                assert member.stdout.readline() == "FenceRejected\n"
        finally:
            member.kill()
    assert sorted(database.execute("SELECT n FROM effects")) == [(n,) for n in range(5)]
