"""PostgreSQL: settings that forget grants, end sessions that only wait, or mix them; `postgresql+session://` as well.

Read with psycopg on a connection of its own; nothing is written. A session lock is as old as its session, so what ends
idle sessions ends locks there, while rows in a table stay.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from ...backends.postgresql.address import read_url
from ...backends.postgresql.transport import driver
from ..clocks import apart
from ..examination import Examination
from ..finding import CheckResult, HealthCheck, check, failed, fine, warning

OLDEST, SUPPORTED = 12, 14
SEASONS = (
    "SELECT extract(timezone FROM timestamptz '2026-01-15') <> extract(timezone FROM timestamptz '2026-07-15'), "
    "current_setting('TimeZone')"
)


class PostgreSQLSettings:
    """One session. `session_locks`: whether locks are held by sessions, not by rows."""

    def __init__(self, url: str, request_timeout: float) -> None:
        self.session_locks = "+session" in url.partition("://")[0]
        self.request_timeout = request_timeout
        self._url = url.replace("+session://", "://", 1)

    @cached_property
    def connection(self) -> Any:
        parameters = {**read_url(self._url).parameters, "connect_timeout": str(max(2, int(self.request_timeout)))}
        return driver().connect(**parameters, autocommit=True)

    def close(self) -> None:
        if "connection" in self.__dict__:
            self.connection.close()

    def row(self, statement: str) -> tuple[Any, ...]:
        row: tuple[Any, ...] = self.connection.execute(statement).fetchone()
        return row

    def setting(self, name: str) -> str:
        """As the server shows it: 'on', '5s'."""
        return str(self.row(f"SELECT current_setting('{name}')")[0])

    def milliseconds(self, name: str) -> int:
        """A setting of time; 0 where the server does not know it."""
        found = self.connection.execute("SELECT setting FROM pg_settings WHERE name = %s", (name,)).fetchone()
        return 0 if found is None else int(found[0])

    @cached_property
    def pooled(self) -> bool:
        """Whether the process that answers is another one than the connection was told."""
        told = self.connection.info.backend_pid
        return any(int(self.row("SELECT pg_backend_pid()")[0]) != told for _ in range(3))


@check("postgresql.version")
def version(server: PostgreSQLSettings) -> CheckResult:
    number = int(server.connection.info.server_version) // 10000
    seen = f"the version is {server.setting('server_version')}"
    return failed(seen) if number < OLDEST else warning(seen) if number < SUPPORTED else fine(seen)


@check("postgresql.primary")
def primary(server: PostgreSQLSettings) -> CheckResult:
    if server.row("SELECT pg_is_in_recovery()")[0]:
        return failed("it is a standby")
    if server.setting("default_transaction_read_only") == "on":
        return failed("default_transaction_read_only is on for this role")
    return fine("it is the primary, and can be written")


@check("postgresql.encoding")
def encoding(server: PostgreSQLSettings) -> CheckResult:
    name = server.setting("server_encoding")
    return fine("the database is in UTF8") if name == "UTF8" else failed(f"the database is in {name}")


@check("postgresql.fsync")
def fsync(server: PostgreSQLSettings) -> CheckResult:
    off = [name for name in ("fsync", "full_page_writes") if server.setting(name) != "on"]
    return warning(f"{' and '.join(off)} is off") if off else fine("fsync and full_page_writes are on")


@check("postgresql.synchronous-commit")
def synchronous_commit(server: PostgreSQLSettings) -> CheckResult:
    value = server.setting("synchronous_commit")
    return warning("synchronous_commit is off") if value == "off" else fine(f"synchronous_commit is {value}")


@check("postgresql.standby")
def standby(server: PostgreSQLSettings) -> CheckResult:
    count = int(server.row("SELECT count(*) FROM pg_stat_replication")[0])
    if not count:
        return fine("no standby follows it")
    names, commit = server.setting("synchronous_standby_names"), server.setting("synchronous_commit")
    if names and commit not in ("off", "local"):
        return fine(f"{count} standbys follow it, and a commit waits for {names}")
    why = "synchronous_standby_names is empty" if not names else f"synchronous_commit is {commit}"
    return warning(f"{count} standbys follow it asynchronously: {why}")


@check("postgresql.idle-timeout")
def idle_timeout(server: PostgreSQLSettings) -> CheckResult:
    limit = server.milliseconds("idle_session_timeout")
    if limit == 0:
        return fine("idle_session_timeout is off")
    seen = f"idle_session_timeout is {limit} ms"
    return failed(f"{seen}, and a lock ends with its session") if server.session_locks else warning(seen)


@check("postgresql.statement-timeout")
def statement_timeout(server: PostgreSQLSettings) -> CheckResult:
    limits = {name: server.milliseconds(name) for name in ("statement_timeout", "lock_timeout", "transaction_timeout")}
    short = [f"{name} is {limit} ms" for name, limit in limits.items() if 0 < limit < 1000 * server.request_timeout]
    if short:
        return warning(f"{', '.join(short)}, which is less than the request_timeout of {server.request_timeout:g} s")
    return fine("no statement is ended before its request_timeout")


@check("postgresql.pooler")
def pooler(server: PostgreSQLSettings) -> CheckResult:
    if not server.pooled:
        return fine("this connection has a session of its own")
    seen = "a pooler gives each transaction another session"
    if server.session_locks:
        return failed(f"{seen}: a lock would belong to whoever comes next")
    return warning(f"{seen}: waiters are not told of their turn, and look again and again")


@check("postgresql.connections")
def connections(server: PostgreSQLSettings) -> CheckResult:
    used = int(server.row("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")[0])
    most = int(server.setting("max_connections")) - int(server.setting("superuser_reserved_connections"))
    seen = f"{used} of {most} connections are used"
    return failed(seen) if used >= most else warning(seen) if used > 0.7 * most else fine(seen)


@check("postgresql.autovacuum")
def autovacuum(server: PostgreSQLSettings) -> CheckResult:
    if server.setting("autovacuum") == "on":
        return fine("autovacuum is on")
    return warning("autovacuum is off")


@check("postgresql.time-zone")
def time_zone(server: PostgreSQLSettings) -> CheckResult:
    changes, name = server.row(SEASONS)
    if changes:
        return warning(f"the time zone {name} has a summer time")
    return fine(f"the time zone is {name}")


@check("postgresql.clock")
def clock(server: PostgreSQLSettings) -> CheckResult:
    return apart(lambda: float(server.row("SELECT extract(epoch FROM clock_timestamp())")[0]), time.time)


CHECKS: Sequence[HealthCheck[PostgreSQLSettings]] = (
    *(version, primary, encoding, fsync, synchronous_commit, standby, idle_timeout, statement_timeout, pooler),
    *(connections, autovacuum, time_zone, clock),
)


@contextmanager
def examinations(url: str, request_timeout: float) -> Iterator[list[Examination]]:
    server = PostgreSQLSettings(url, request_timeout)
    try:
        yield [Examination(server, CHECKS)]
    finally:
        server.close()
