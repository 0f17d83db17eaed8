"""Records on MariaDB: tables of an older holdfast, users who may little, a binary log by statement."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.backends.mysql.programs import VERSION
from holdfast.errors import Misconfigured
from tests.mysql.server import Server, connect, serving
from tests.relational import test_records as shared
from tests.relational.test_records import client_of
from tests.support.record_checks import CHECKS

RIGHTS = "SELECT, INSERT, UPDATE, DELETE, EXECUTE"


def test_tables_of_an_older_holdfast_get_records_from_who_may(server: Server, database: str) -> None:
    url, humble = server.url(database), server.url(database).replace("root@", "clerk@")
    with holdfast.connect(url) as locks:
        token = locks.lock("door").acquire().token
    for statement in (
        "DROP TABLE holdfast_record",
        "DROP PROCEDURE holdfast_swap_record",
        "DROP PROCEDURE holdfast_touch_records",
        f"UPDATE holdfast_meta SET value = '{VERSION - 1}' WHERE word = 'version'",
        "CREATE OR REPLACE USER clerk@'127.0.0.1'",
        f"GRANT {RIGHTS} ON {database}.* TO clerk@'127.0.0.1'",
    ):
        server.execute(statement, database)
    try:
        with pytest.raises(Misconfigured, match=r"is of an older version.*holdfast schema mysql"):
            holdfast.connect(humble)
        with holdfast.connect(url, require={"records"}) as locks:
            assert locks.lock("door").acquire().token > token
        with holdfast.connect(humble, require={"records"}) as locks:
            for check in CHECKS:
                check(client_of(locks))
    finally:
        server.execute("DROP USER clerk@'127.0.0.1'")


def test_a_replay_waits_for_nobody(server: Server, database: str) -> None:
    with holdfast.connect(server.url(database)) as locks, connect(server.port, database=database) as other:
        once = locks.once("payments", keep="1h", takeover="refuse")
        with once.attempt("7") as attempt:
            attempt.complete("paid")
        other.cursor().execute("SELECT 1 FROM holdfast_record FOR UPDATE")
        with once.attempt("7") as attempt:
            assert attempt.result == "paid"


def test_under_repeatable_read_with_a_binary_log_by_statement() -> None:
    """Where the session stays at REPEATABLE READ, gaps are locked, too: still nobody waits in a circle for long."""
    settings: dict[str, str | None] = {"log-bin": None, "binlog-format": "STATEMENT"}
    with serving(settings) as server:
        for number, test in enumerate(
            (
                shared.test_no_update_is_lost_and_versions_grow,
                shared.test_one_of_many_makes_a_new_record_and_a_deleted_one_comes_back_higher,
            )
        ):
            server.execute(f"CREATE DATABASE db{number}")
            test(server.url(f"db{number}"))
        with holdfast.connect(server.url("db0")) as locks:
            for check in CHECKS:
                check(client_of(locks))
