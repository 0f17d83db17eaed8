"""Each check of PostgreSQL against a server, a role or a session with the setting that it is about."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from holdfast.doctor import Outcome
from holdfast.doctor.checks import postgresql
from tests.doctor.cases import finding_of, ids_of, look, with_a_wrong_clock

if TYPE_CHECKING:
    from tests.postgresql.pooler import Pooler
    from tests.postgresql.server import Server

SESSION = {
    "postgresql.synchronous-commit": [
        ("synchronous_commit=off", Outcome.WARNING),
        ("synchronous_commit=on", Outcome.FINE),
    ],
    "postgresql.primary": [("default_transaction_read_only=on", Outcome.FAILED)],
    "postgresql.idle-timeout": [
        ("idle_session_timeout=600000", Outcome.WARNING),
        ("idle_session_timeout=0", Outcome.FINE),
    ],
    "postgresql.statement-timeout": [
        ("statement_timeout=900", Outcome.WARNING),
        ("lock_timeout=900", Outcome.WARNING),
        ("statement_timeout=60000", Outcome.FINE),
    ],
    "postgresql.time-zone": [("timezone=Europe/Berlin", Outcome.WARNING), ("timezone=Asia/Tokyo", Outcome.FINE)],
}
"""By settings of the session, which a role or a database may have as well."""
ELSEWHERE = {"version", "encoding", "fsync", "standby", "pooler", "connections", "autovacuum", "clock"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    from tests.postgresql.server import running

    with running(fsync="on", full_page_writes="on", max_connections="20") as server:
        yield server


def with_setting(url: str, setting: str) -> str:
    return f"{url}?options=-c{setting.replace('=', '%3D').replace('/', '%2F')}"


def test_every_check_is_seen_failing() -> None:
    assert {*SESSION, *(f"postgresql.{name}" for name in ELSEWHERE)} == ids_of("postgresql")
    assert all(any(outcome is not Outcome.FINE for _, outcome in cases) for cases in SESSION.values())


@pytest.mark.parametrize(
    ("check_id", "setting", "outcome"),
    [(check_id, setting, outcome) for check_id, cases in SESSION.items() for setting, outcome in cases],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_setting(server: Server, check_id: str, setting: str, outcome: Outcome) -> None:
    finding = finding_of(look(with_setting(server.url(), setting)), check_id)
    assert finding.outcome is outcome, finding


def test_a_server_as_it_should_be_is_fine(server: Server) -> None:
    report = look(server.url())
    assert [
        each for each in report.findings if each.id.startswith("postgresql") and each.outcome is not Outcome.FINE
    ] == []


def test_a_session_lock_ends_with_its_session(server: Server) -> None:
    url = with_setting(server.url().replace("postgresql", "postgresql+session", 1), "idle_session_timeout=600000")
    assert finding_of(look(url), "postgresql.idle-timeout").outcome is Outcome.FAILED


def test_an_old_server() -> None:
    def of(number: int) -> Outcome:
        old = SimpleNamespace(connection=SimpleNamespace(info=SimpleNamespace(server_version=number)), setting=str)
        finding = postgresql.version.finding(old)  # type: ignore[arg-type] # no package has one
        assert finding is not None
        return finding.outcome

    assert [of(number) for number in (110022, 130005, 150018)] == [Outcome.FAILED, Outcome.WARNING, Outcome.FINE]


def test_another_encoding(server: Server) -> None:
    server.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    assert finding_of(look(server.url("ascii")), "postgresql.encoding").outcome is Outcome.FAILED


def test_a_server_that_does_not_flush(postgresql_server: Server) -> None:
    assert finding_of(look(postgresql_server.url()), "postgresql.fsync").outcome is Outcome.WARNING


def test_a_pooler_that_mixes_sessions(postgresql_pooler: Pooler) -> None:
    url = postgresql_pooler.url()
    busy = postgresql_pooler.server.execute
    with several(url):
        assert finding_of(look(url), "postgresql.pooler").outcome is Outcome.WARNING
        session = url.replace("postgresql", "postgresql+session", 1)
        assert finding_of(look(session), "postgresql.pooler").outcome is Outcome.FAILED
    assert busy("SELECT 1") == [(1,)]


@contextmanager
def several(url: str, count: int = 1) -> Iterator[None]:
    """Other clients that are connected."""
    import psycopg

    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(psycopg.connect(url, autocommit=True)).execute("SELECT 1")
        yield


def test_few_connections_are_left(server: Server) -> None:
    with several(server.url(), 13):
        assert finding_of(look(server.url()), "postgresql.connections").outcome is Outcome.WARNING


def test_dead_rows_that_nobody_removes(server: Server) -> None:
    server.execute("ALTER SYSTEM SET autovacuum = off")
    try:
        server.execute("SELECT pg_reload_conf()")
        end = time.monotonic() + 60
        while server.execute("SHOW autovacuum") != [("off",)] and time.monotonic() < end:
            time.sleep(0.05)
        assert finding_of(look(server.url()), "postgresql.autovacuum").outcome is Outcome.WARNING
    finally:
        server.execute("ALTER SYSTEM RESET autovacuum")
        server.execute("SELECT pg_reload_conf()")


def test_a_wrong_clock(server: Server, tmp_path: Path) -> None:
    assert with_a_wrong_clock("postgresql.clock", server.url(), tmp_path) == "warning"


def test_a_standby(server: Server) -> None:
    from tests.postgresql.server import Server as Standby
    from tests.postgresql.server import free_port, identity, new_folder, program

    folder = new_folder("hf-doctor-standby-")
    words = [program("pg_basebackup"), "-D", str(folder / "data"), "-R", "-c", "fast", "-X", "stream"]
    words += ["-d", server.url()]
    subprocess.run(words, check=True, capture_output=True, cwd=folder, **identity())
    standby = Standby(folder, free_port(), {"max_connections": "20", "fsync": "off"})
    try:
        standby.start()
        end = time.monotonic() + 60
        while server.execute("SELECT count(*) FROM pg_stat_replication") == [(0,)] and time.monotonic() < end:
            time.sleep(0.05)
        assert finding_of(look(server.url()), "postgresql.standby").outcome is Outcome.WARNING
        assert finding_of(look(standby.url()), "postgresql.primary").outcome is Outcome.FAILED
    finally:
        standby.stop()
        shutil.rmtree(folder, ignore_errors=True)
