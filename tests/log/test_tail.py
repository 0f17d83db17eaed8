"""`tail` never skips an event that became visible late: held-open transactions, rollbacks, storms, a restored dump."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from typing import Any

import pytest

from holdfast.errors import Misconfigured
from holdfast.log import ANY, NONE, START, EventData, Position, RecordedEvent, append, read, tail
from holdfast.log.programs import programs
from tests.log.databases import Database, execute
from tests.postgresql.server import Server, identity, program, running

WAIT_S = 120.0


def one(name: str) -> EventData:
    return EventData("happened", id=name)


class Reader:
    """Follows the log as a consumer would, with nothing but the last position that it was given."""

    def __init__(self, database: Database) -> None:
        self.connection = database.connect()
        self.after = START
        self.seen: list[RecordedEvent] = []

    def poll(self, limit: int = 7) -> list[str]:
        new = []
        while page := tail(self.connection, after=self.after, limit=limit):
            new += page
            self.after = page[-1].position
            self.connection.commit()
        self.connection.commit()
        self.seen += new
        return [event.id for event in new]


def held_open(database: Database) -> list[str]:
    """An early transaction commits late, another is rolled back: what a reader got that looked all the time."""
    for name in ("early", "middle"):
        with_tables = database.connect()
        append(with_tables, name, one(f"{name}0"), expected=NONE)
        with_tables.commit()
    reader = Reader(database)
    reader.poll()
    early, undone = database.connect(), database.connect()
    append(early, "early", one("early1"), expected=ANY)
    reader.poll()
    if database.engine == "postgresql":  # elsewhere one transaction at a time appends
        append(undone, "undone", one("undone1"), expected=ANY)
    late = threading.Thread(target=_append, args=(database, "middle", one("middle1")))
    late.start()
    if database.engine == "postgresql":
        late.join(WAIT_S)
    reader.poll()
    undone.rollback()
    reader.poll()
    early.commit()
    late.join(WAIT_S)
    reader.poll()
    return [event.id for event in reader.seen]


def _append(database: Database, stream: str, event: EventData) -> None:
    connection = database.open()
    append(connection, stream, event, expected=ANY)
    connection.commit()
    connection.close()


def test_an_event_that_became_visible_late_is_not_skipped(database: Database) -> None:
    assert held_open(database) == ["early0", "middle0", "early1", "middle1"]


def test_the_classic_bug_is_caught(postgresql: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: everything that is visible is given."""
    text = programs("postgresql")["tail"]
    monkeypatch.setitem(
        programs("postgresql"), "tail", text.replace("THEN t.shift + txid", "THEN t.shift + 1000 + txid")
    )
    assert "early1" not in held_open(postgresql)


def test_a_streams_positions_rise_with_its_versions(postgresql: Database) -> None:
    """A transaction that got its id early may append late."""
    begin = postgresql.connect()
    append(begin, "s", one("s1"), expected=NONE)
    begin.commit()
    early, late = postgresql.connect(), postgresql.connect()
    execute(early, "SELECT txid_current()")
    append(late, "s", one("s2"), expected=1)
    late.commit()
    reader = Reader(postgresql)
    reader.poll()
    append(early, "s", one("s3"), expected=2)
    reader.poll()
    early.commit()
    reader.poll()
    assert [event.id for event in reader.seen] == ["s1", "s2", "s3"]


def storm(database: Database, writers: int = 6, turns: int = 12, seed: int = 1) -> tuple[list[RecordedEvent], set[str]]:
    """What a reader saw while writers appended, in transactions that were held open or rolled back; and what was
    committed."""
    begin = database.connect()
    append(begin, "s0", one("first"), expected=NONE)
    begin.commit()
    committed, failed, mutex = {"first"}, [], threading.Lock()

    def write(number: int) -> None:
        chance = random.Random(seed * 1000 + number)
        connection = database.open()
        try:
            for turn in range(turns):
                names = [f"{number}.{turn}.{part}" for part in range(chance.randint(1, 3))]
                if chance.random() < 0.5:
                    execute(connection, "SELECT 1")  # a transaction, and where it matters a snapshot, of before
                    if database.engine == "postgresql":
                        execute(connection, "SELECT txid_current()")
                    time.sleep(chance.random() * 0.01)
                try:
                    append(connection, f"s{chance.randrange(3)}", [one(name) for name in names], expected=ANY)
                    time.sleep(chance.random() * 0.02)
                    if chance.random() < 0.25:
                        connection.rollback()
                        continue
                    connection.commit()
                except Exception:  # noqa: BLE001  a deadlock, which the database ends
                    connection.rollback()
                    continue
                with mutex:
                    committed.update(names)
        except BaseException as error:  # noqa: BLE001  raised by the test
            failed.append(error)
        finally:
            connection.close()

    reader = Reader(database)
    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + WAIT_S
    while any(thread.is_alive() for thread in threads) and time.monotonic() < end:
        reader.poll(limit=5)
        time.sleep(0.001)
    for thread in threads:
        thread.join(WAIT_S)
    assert failed == []
    reader.poll()
    return reader.seen, committed


def test_a_storm_leaves_no_gap(database: Database) -> None:
    seen, committed = storm(database)
    assert len(committed) > 20
    assert {event.id for event in seen} == committed
    assert len(seen) == len(committed)
    assert [event.position for event in seen] == sorted(event.position for event in seen)
    for stream in ("s0", "s1", "s2"):
        versions = [event.version for event in seen if event.stream == stream]
        assert versions == list(range(1, len(versions) + 1))
        whole = read(database.connect(), stream)
        assert [event.version for event in whole] == versions


PLANTS = {
    # every visible event is given
    "postgresql": ("tail", "THEN t.shift + txid", "THEN t.shift + 100000 + txid"),
    # positions are given when an event is written, not in the order of commits
    "mariadb": ("row", "(SELECT position FROM holdfast_log_state WHERE name = 'last') - {}", "UUID_SHORT() + 0 * {}"),
}


@pytest.mark.parametrize("engine", PLANTS)
def test_a_storm_finds_a_gap(
    engine: str, request: pytest.FixtureRequest, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted bugs: found by one of a few storms."""
    from tests.log.conftest import new_database

    name, right, wrong = PLANTS[engine]
    dialect = "mysql" if engine == "mariadb" else engine
    assert right in programs(dialect)[name]
    monkeypatch.setitem(programs(dialect), name, programs(dialect)[name].replace(right, wrong))
    if engine == "mariadb":  # and nobody waits for the counter
        text = programs(dialect)["advance"]
        monkeypatch.setitem(programs(dialect), "advance", text.replace("= 'last'", "= 'nobody'"))
        # nor looks for what it does not see, which would hide the mistake: positions have holes now
        monkeypatch.setitem(programs(dialect), "unseen_position", "SELECT 1 AS position FROM DUAL WHERE {} > {}")
    for seed in range(5):
        database = new_database(engine, request, tmp_path)
        with database.stack:
            seen, committed = storm(database, seed=seed)
            if {event.id for event in seen} != committed:
                return
    pytest.fail("nobody noticed")


def test_a_long_transaction_elsewhere_only_delays(postgresql: Database) -> None:
    other, writer, reader = postgresql.connect(), postgresql.connect(), Reader(postgresql)
    execute(other, "SELECT txid_current()")
    append(writer, "s", one("a"), expected=NONE)
    writer.commit()
    assert reader.poll() == []
    other.rollback()
    assert reader.poll() == ["a"]


def test_positions_go_on_behind_a_restored_dump(postgresql_server: Server, postgresql: Database) -> None:
    """A new cluster counts its transactions from the beginning."""
    use_up = "DO $$ BEGIN FOR i IN 1..3000 LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$"
    connection = postgresql.connect()
    append(connection, "s", one("a"), expected=NONE)
    connection.commit()
    postgresql_server.execute(use_up)
    append(connection, "s", one("b"), expected=1)
    connection.commit()
    before = Reader(postgresql)
    assert before.poll() == ["a", "b"]
    dump = subprocess.run(
        [program("pg_dump"), "--dbname", postgresql.address[0]],
        check=True,
        capture_output=True,
        timeout=60,
        **identity(),
    ).stdout
    with running() as other:
        restored = Database("postgresql", (other.url(),))
        subprocess.run(
            [program("psql"), "-q", "-v", "ON_ERROR_STOP=1", other.url()],
            check=True,
            input=dump,
            timeout=60,
            capture_output=True,
        )
        with restored.stack:
            connection = restored.connect()
            (here,) = execute(connection, "SELECT txid_current()")[0]
            connection.rollback()
            assert here < before.after.major, "or the test shows nothing"
            assert [event.id for event in tail(connection)] == ["a", "b"]
            append(connection, "s", one("c"), expected=2)
            append(connection, "t", one("d"), expected=NONE)
            connection.commit()
            assert [event.id for event in tail(connection, after=before.after)] == ["c", "d"]
            assert [event.id for event in tail(connection)] == ["a", "b", "c", "d"]


def test_mariadb_does_not_follow_what_is_not_committed(mariadb: Database) -> None:
    reader, writer = mariadb.connect(), mariadb.connect()
    append(writer, "s", one("a"), expected=NONE)
    writer.commit()
    execute(reader, "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
    append(writer, "s", one("b"), expected=1)
    with pytest.raises(Misconfigured, match="READ UNCOMMITTED"):
        tail(reader)
    execute(reader, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    reader.commit()
    assert [event.id for event in tail(reader)] == ["a"]


def test_many_append_at_once_after_a_restore(postgresql: Database) -> None:
    """One of them notices that the cluster is another one; the others are not disturbed."""
    connection = postgresql.connect()
    append(connection, "s", one("a"), expected=NONE)
    connection.commit()
    postgresql.execute("UPDATE holdfast_log_state SET system = 'another'")
    postgresql.execute("UPDATE holdfast_log_stream SET major = major + 1000000")
    postgresql.execute("UPDATE holdfast_log SET major = major + 1000000")
    after = tail(connection)[-1].position
    connection.rollback()
    append(connection, "t", one("b"), expected=NONE)
    threads = [threading.Thread(target=_append, args=(postgresql, f"u{n}", one(f"c{n}"))) for n in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    connection.commit()
    for thread in threads:
        thread.join(WAIT_S)
    assert {event.id for event in tail(connection, after=after)} == {"b", "c0", "c1", "c2", "c3"}


def test_positions_are_read_as_they_were_written() -> None:
    assert Position.parse("12-3") == Position(12, 3)
    assert str(Position.parse(str(START))) == "0-0"
