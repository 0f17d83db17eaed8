"""Each check of MariaDB against a server with the setting that it is about."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from holdfast.doctor import Outcome
from holdfast.doctor.checks import mysql
from tests.doctor.cases import finding_of, ids_of, look, with_a_wrong_clock

if TYPE_CHECKING:
    from tests.mysql.server import Server

GLOBAL = {
    "mysql.primary": [("read_only", "1", Outcome.FAILED), ("read_only", "0", Outcome.FINE)],
    "mysql.flush": [
        ("innodb_flush_log_at_trx_commit", "2", Outcome.WARNING),
        ("sync_binlog", "0", Outcome.WARNING),
        ("innodb_flush_log_at_trx_commit", "1", Outcome.FINE),
    ],
    "mysql.wait-timeout": [("wait_timeout", "60", Outcome.WARNING), ("wait_timeout", "28800", Outcome.FINE)],
    "mysql.statement-timeout": [
        ("max_statement_time", "2", Outcome.WARNING),
        ("max_statement_time", "0", Outcome.FINE),
    ],
    "mysql.connections": [("max_connections", "10", Outcome.WARNING), ("max_connections", "300", Outcome.FINE)],
}
"""Settings that new sessions take over from the server's."""
ELSEWHERE = {"version", "replicas", "pooler", "time-zone", "clock"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    from tests.mysql.server import serving

    flushed: dict[str, str | None] = {
        "innodb-flush-log-at-trx-commit": "1",
        "log-bin": "log",
        "sync-binlog": "1",
        "server-id": "1",
        "default-time-zone": "+00:00",
    }
    with serving(flushed) as server:
        server.execute("CREATE DATABASE doctor")
        yield server


@contextmanager
def with_setting(server: Server, name: str, value: str) -> Iterator[None]:
    before = server.execute(f"SELECT @@GLOBAL.{name}")[0][0]
    server.execute(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        server.execute(f"SET GLOBAL {name} = {before}")


def test_every_check_is_seen_failing() -> None:
    assert {*GLOBAL, *(f"mysql.{name}" for name in ELSEWHERE)} == ids_of("mysql")
    assert all(any(case[2] is not Outcome.FINE for case in cases) for cases in GLOBAL.values())


@pytest.mark.parametrize(
    ("check_id", "name", "value", "outcome"),
    [(check_id, *case) for check_id, cases in GLOBAL.items() for case in cases],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_setting(server: Server, check_id: str, name: str, value: str, outcome: Outcome) -> None:
    from tests.mysql.server import connect

    with with_setting(server, name, value), ExitStack() as stack:
        for _ in range(7 if check_id == "mysql.connections" else 0):
            stack.enter_context(connect(server.port))
        finding = finding_of(look(server.url("doctor")), check_id)
        assert finding.outcome is outcome, finding


def test_a_session_lock_ends_with_its_session(server: Server) -> None:
    with with_setting(server, "wait_timeout", "60"):
        report = look(server.url("doctor").replace("mysql://", "mysql+session://", 1))
        assert finding_of(report, "mysql.wait-timeout").outcome is Outcome.FAILED


@pytest.mark.parametrize("said", ["8.0.36", "10.5.1-MariaDB", "5.5.68-MariaDB"])
def test_another_server(said: str) -> None:
    finding = mysql.version.finding(SimpleNamespace(settings={"version": said}))  # type: ignore[arg-type]
    assert finding is not None
    assert finding.outcome is Outcome.FAILED


def test_a_proxy_that_shares_sessions(server: Server) -> None:
    """No package has one; a session whose number is not the one that was told is what such a proxy shows."""
    settings = mysql.MariaDBSettings(server.url("doctor"), 20.0)
    try:
        told = settings.connection.thread_id()
        settings.connection.thread_id = lambda: told + 1
        for session_locks, outcome in ((False, Outcome.WARNING), (True, Outcome.FAILED)):
            settings.session_locks = session_locks
            finding = mysql.pooler.finding(settings)
            assert finding is not None
            assert finding.outcome is outcome
    finally:
        settings.close()


def test_a_time_zone_with_a_summer_time() -> None:
    from tests.mysql.server import serving

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        with serving() as server:
            server.execute("CREATE DATABASE doctor")
            assert finding_of(look(server.url("doctor")), "mysql.time-zone").outcome is Outcome.WARNING


def test_a_wrong_clock(server: Server, tmp_path: Path) -> None:
    assert with_a_wrong_clock("mysql.clock", server.url("doctor"), tmp_path) == "warning"
    assert finding_of(look(server.url("doctor")), "mysql.clock").outcome is Outcome.FINE


def test_a_replica_that_follows(server: Server) -> None:
    from tests.mysql.server import serving

    assert finding_of(look(server.url("doctor")), "mysql.replicas").outcome is Outcome.FINE
    with serving({"server-id": "2"}) as replica:
        server.execute("CREATE OR REPLACE USER copier@'127.0.0.1' IDENTIFIED BY 'secret'")
        server.execute("GRANT REPLICATION SLAVE ON *.* TO copier@'127.0.0.1'")
        replica.execute(
            f"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {server.port}, MASTER_USER = 'copier', "
            "MASTER_PASSWORD = 'secret'"
        )
        replica.execute("START SLAVE")
        end = time.monotonic() + 60
        while server.execute("SHOW GLOBAL STATUS LIKE 'Slaves_connected'")[0][1] == "0" and time.monotonic() < end:
            time.sleep(0.05)
        try:
            assert finding_of(look(server.url("doctor")), "mysql.replicas").outcome is Outcome.WARNING
        finally:
            replica.execute("STOP SLAVE")
