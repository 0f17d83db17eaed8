"""MariaDB: settings that forget grants, end sessions that only wait, or grant twice; `mysql+session://` as well.

Read with PyMySQL on a connection of its own; nothing is written.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from ...backends.mysql.address import driver, read_url
from ...backends.mysql.capabilities import OLDEST
from ..clocks import apart
from ..examination import Examination
from ..finding import CheckResult, HealthCheck, check, failed, fine, warning

SHORT_WAIT_TIMEOUT_S = 300
SEASONS = (
    "SELECT TIMESTAMPDIFF(MINUTE, FROM_UNIXTIME(0), FROM_UNIXTIME(1768435200)) - 1768435200 DIV 60, "
    "TIMESTAMPDIFF(MINUTE, FROM_UNIXTIME(0), FROM_UNIXTIME(1784073600)) - 1784073600 DIV 60, "
    "IF(@@time_zone = 'SYSTEM', @@system_time_zone, @@time_zone)"
)
"""How far January and July are from UTC, compared with the same moment."""


class MariaDBSettings:
    """One session. `session_locks`: whether locks are held by sessions, not by rows."""

    def __init__(self, url: str, request_timeout: float) -> None:
        self.session_locks = "+session" in url.partition("://")[0]
        self.request_timeout = request_timeout
        self._words = read_url(url)

    @cached_property
    def connection(self) -> Any:
        bounds = dict.fromkeys(("connect_timeout", "read_timeout"), max(1, int(self.request_timeout)))
        return driver().connect(charset="utf8mb4", autocommit=True, **self._words, **bounds)

    def close(self) -> None:
        if "connection" in self.__dict__:
            self.connection.close()

    def row(self, statement: str) -> tuple[Any, ...]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            row: tuple[Any, ...] = cursor.fetchone()
            return row

    @cached_property
    def settings(self) -> dict[str, str]:
        with self.connection.cursor() as cursor:
            cursor.execute("SHOW SESSION VARIABLES")
            return {str(name).lower(): str(value) for name, value in cursor.fetchall()}

    def status(self, name: str) -> int:
        found = self.row(f"SHOW GLOBAL STATUS LIKE '{name}'")
        return int(found[1]) if found else 0


@check("mysql.version")
def version(server: MariaDBSettings) -> CheckResult:
    said = server.settings["version"]
    numbers = tuple(map(int, re.findall(r"\d+", said)[:2]))
    return failed(f"the server is {said}") if "MariaDB" not in said or numbers < OLDEST else fine(f"it is {said}")


@check("mysql.primary")
def primary(server: MariaDBSettings) -> CheckResult:
    names = ("read_only", "innodb_read_only")
    on = [name for name in names if server.settings.get(name, "OFF") not in ("OFF", "0")]
    return failed(f"{', '.join(on)} is on") if on else fine("it can be written")


@check("mysql.flush")
def flush(server: MariaDBSettings) -> CheckResult:
    value = server.settings["innodb_flush_log_at_trx_commit"]
    if value != "1":
        return warning(f"innodb_flush_log_at_trx_commit is {value}")
    if server.settings["log_bin"] == "ON" and server.settings["sync_binlog"] != "1":
        return warning(f"sync_binlog is {server.settings['sync_binlog']}")
    return fine("a commit waits for the disk")


@check("mysql.replicas")
def replicas(server: MariaDBSettings) -> CheckResult:
    if server.settings.get("wsrep_on") == "ON":
        return warning("it is a node of a Galera cluster (wsrep_on)")
    count = server.status("Slaves_connected")
    if not count:
        return fine("no replica follows it")
    if server.settings.get("rpl_semi_sync_master_enabled") == "ON":
        return fine(f"{count} replicas follow it, semi-synchronously")
    return warning(f"{count} replicas follow it asynchronously")


@check("mysql.wait-timeout")
def wait_timeout(server: MariaDBSettings) -> CheckResult:
    limit = int(server.settings["wait_timeout"])
    seen = f"wait_timeout is {limit} s"
    if limit >= SHORT_WAIT_TIMEOUT_S:
        return fine(seen)
    return failed(f"{seen}, and a lock ends with its session") if server.session_locks else warning(seen)


@check("mysql.statement-timeout")
def statement_timeout(server: MariaDBSettings) -> CheckResult:
    limit = float(server.settings.get("max_statement_time", "0"))
    if 0 < limit < server.request_timeout:
        return warning(
            f"max_statement_time is {limit:g} s, less than the request_timeout of {server.request_timeout:g}"
        )
    return fine("no statement is ended before its request_timeout")


@check("mysql.pooler")
def pooler(server: MariaDBSettings) -> CheckResult:
    told = server.connection.thread_id()
    if all(int(server.row("SELECT CONNECTION_ID()")[0]) == told for _ in range(3)):
        return fine("this connection has a session of its own")
    seen = "a proxy shares sessions"
    if server.session_locks:
        return failed(f"{seen}: a lock would belong to whoever comes next")
    return warning(f"{seen}: waiters are not told of their turn, and look again and again")


@check("mysql.connections")
def connections(server: MariaDBSettings) -> CheckResult:
    used, most = server.status("Threads_connected"), int(server.settings["max_connections"])
    seen = f"{used} of {most} connections are used"
    return failed(seen) if used >= most else warning(seen) if used > 0.7 * most else fine(seen)


@check("mysql.time-zone")
def time_zone(server: MariaDBSettings) -> CheckResult:
    winter, summer, name = server.row(SEASONS)
    if winter != summer:
        return warning(f"the time zone {name} has a summer time")
    return fine(f"the time zone is {name}")


@check("mysql.clock")
def clock(server: MariaDBSettings) -> CheckResult:
    return apart(lambda: float(server.row("SELECT UNIX_TIMESTAMP(SYSDATE(6))")[0]), time.time)


CHECKS: Sequence[HealthCheck[MariaDBSettings]] = (
    *(version, primary, flush, replicas, wait_timeout, statement_timeout, pooler, connections, time_zone, clock),
)


@contextmanager
def examinations(url: str, request_timeout: float) -> Iterator[list[Examination]]:
    server = MariaDBSettings(url, request_timeout)
    try:
        yield [Examination(server, CHECKS)]
    finally:
        server.close()
