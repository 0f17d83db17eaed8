"""Records on PostgreSQL: tables of an older holdfast, roles that may little, poolers, other settings."""

from __future__ import annotations

import psycopg
import pytest

import holdfast
from holdfast.backends.postgresql.programs import VERSION
from holdfast.errors import Misconfigured
from tests.postgresql.pooler import pooling
from tests.postgresql.server import Server
from tests.relational.test_records import client_of
from tests.support.record_checks import CHECKS

BEFORE = f"""DROP TABLE holdfast_record;
DROP FUNCTION holdfast_swap_record, holdfast_touch_records, holdfast_forget_records;
UPDATE holdfast_meta SET value = '{VERSION - 1}' WHERE key = 'version'"""


def test_tables_of_an_older_holdfast_get_records_from_their_owner(server: Server, database: str) -> None:
    url, role = server.url(database), f"clerk_{database}"
    with holdfast.connect(url) as locks:
        token = locks.lock("door").acquire().token
    server.execute(
        f"{BEFORE}; CREATE ROLE {role} LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}", database=database
    )
    humble = url.replace("postgres@", f"{role}@")
    with pytest.raises(Misconfigured, match="holdfast schema postgresql"):
        holdfast.connect(humble)
    with holdfast.connect(url, require={"records"}) as locks:
        assert locks.lock("door").acquire().token > token
        assert client_of(locks).swap("once:a", 0, b"x").done
    with pytest.raises(Misconfigured, match="may not write to holdfast_record"):
        holdfast.connect(humble, require={"records"})
    server.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast_record TO {role}", database=database)
    with holdfast.connect(humble, require={"records"}) as locks:
        for check in CHECKS:
            check(client_of(locks))


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_behind_a_pooler(server: Server, mode: str) -> None:
    with pooling(server, mode) as pooler, holdfast.connect(pooler.url(), namespace=mode, require={"records"}) as locks:
        for check in CHECKS:
            check(client_of(locks))


@pytest.mark.parametrize(
    "setting",
    ["default_transaction_isolation = 'repeatable read'", "bytea_output = 'escape'", "synchronous_commit = off"],
)
def test_other_settings_change_nothing(server: Server, database: str, setting: str) -> None:
    server.execute(f"ALTER DATABASE {database} SET {setting}")
    with holdfast.connect(server.url(database)) as locks:
        for check in CHECKS:
            check(client_of(locks))


def test_a_replay_waits_for_nobody_and_writes_nothing(server: Server, database: str) -> None:
    with holdfast.connect(server.url(database)) as locks, psycopg.connect(server.url(database)) as other:
        once = locks.once("payments", keep="1h", takeover="refuse")
        with once.attempt("7") as attempt:
            attempt.complete("paid")
        other.execute("SELECT pg_advisory_xact_lock(1752132449, hashtext(name)) FROM holdfast_record")
        [[row]] = other.execute("SELECT ctid FROM holdfast_record FOR UPDATE").fetchall()
        with once.attempt("7") as attempt:
            assert attempt.result == "paid"
        other.rollback()
        with once.attempt("7") as attempt:
            assert attempt.result == "paid"
        assert other.execute("SELECT ctid FROM holdfast_record").fetchall() == [(row,)]


def test_what_is_to_be_forgotten_is_found_by_its_index(server: Server, database: str) -> None:
    """Also by a function that was planned when the table was empty: the cost does not grow with what is kept."""
    with holdfast.connect(server.url(database)) as locks:
        records = client_of(locks)
        for number in range(8):
            records.swap(f"once:{number}", 0, b"x")
        server.execute(
            "INSERT INTO holdfast_record "
            "SELECT 'other/' || n, 1, '', '', 0, 9000000000000000, 1 FROM generate_series(1, 5000) n",
            database=database,
        )
        [[before]] = server.execute(SEQUENTIAL_READS, database=database)
        for number in range(8):
            records.swap(f"once:again:{number}", 0, b"x")
    server.execute("SELECT pg_stat_clear_snapshot()", database=database)
    [[after]] = server.execute(SEQUENTIAL_READS, database=database)
    assert after - before < 5000


SEQUENTIAL_READS = "SELECT coalesce(seq_tup_read, 0) FROM pg_stat_user_tables WHERE relname = 'holdfast_record'"
