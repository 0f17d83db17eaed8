"""The first words on a new connection: what the server is, whether it can be used, and what it can promise.

It is a generator that yields statements and is sent their replies.

1. A server that may only be read, another product or an old version: refused, with what to do.
2. Behind a proxy that shares sessions (the server's own connection id is not the one that the connection was told) no
   ears can be opened: waiters look.
3. The session is set to READ COMMITTED, which locks no gaps between names; the procedures are right under REPEATABLE
   READ too, and stay there where the binary log is by statement, which does not allow the other.
4. A wait for a row or for a table is bounded by the request's own bound. A statement is a transaction that can write
   and ends with it, and may change rows that no key names, whatever the server's defaults are.
5. A session of our own holds a user lock with its number: others can tell by it whether it lives, and wait for its end.
6. The tables and procedures are made where they are missing, or of an older version, and the user may; one client at a
   time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator
from typing import NamedTuple, TypeAlias

from ...errors import Misconfigured
from ...model import Promises
from ..relational.error_mapping import Refused
from .packets import QueryReply
from .programs import VERSION, schema, statements

OLDEST = (10, 6)
KEPT = frozenset({"fencing", "shared", "counting", "records"})
ASKED = (
    *("version", "read_only", "innodb_read_only", "log_bin", "binlog_format", "sync_binlog"),
    *("innodb_flush_log_at_trx_commit", "rpl_semi_sync_master_enabled", "wsrep_on"),
)
FACTS = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})".format(", ".join(f"'{name}'" for name in ASKED)).encode()
REPLICAS = b"SHOW GLOBAL STATUS LIKE 'Slaves_connected'"
"""Everybody may see it. The sessions that serve replicas are seen by those only who may see the sessions of others."""

META = b"SELECT word, value FROM holdfast_meta"
NO_SUCH_CODE = 1146
SHOW_LIFE = b"SELECT GET_LOCK(CONCAT('holdfast-session-', CONNECTION_ID()), 0)"
CREATING = b"SELECT GET_LOCK(CONCAT('holdfast-schema-', LEFT(SHA2(DATABASE(), 256), 32)), 30)"
CREATED = b"SELECT RELEASE_LOCK(CONCAT('holdfast-schema-', LEFT(SHA2(DATABASE(), 256), 32)))"


class Greeting(NamedTuple):
    """What is known after it. `facts` are the server's settings, by name."""

    facts: dict[str, str]
    replicas: int
    pooled: bool
    cluster: str

    @property
    def by_statement(self) -> bool:
        return self.facts.get("log_bin") == "ON" and self.facts.get("binlog_format") == "STATEMENT"

    @property
    def quick(self) -> bool:
        """Whether statements can be prepared here, and what they say be logged."""
        return not self.pooled and not self.by_statement


Talk: TypeAlias = Generator[bytes, QueryReply, Greeting]


def greet(told_id: int, request_timeout: float) -> Talk:
    """The talk; ends with a `Greeting`, or raises `Misconfigured`."""
    facts = {_text(row[0]).lower(): _text(row[1]) for row in (yield FACTS).rows}
    _check(facts)
    bound = max(1, math.ceil(request_timeout))
    by_statement = facts.get("log_bin") == "ON" and facts.get("binlog_format") == "STATEMENT"
    level = "REPEATABLE READ" if by_statement else "READ COMMITTED"
    yield f"SET SESSION TRANSACTION ISOLATION LEVEL {level}, READ WRITE".encode()
    words = "SET SESSION autocommit = 1, completion_type = NO_CHAIN, sql_safe_updates = 0"
    yield f"{words}, innodb_lock_wait_timeout = {bound}, lock_wait_timeout = {bound}".encode()
    pooled = int(_text((yield b"SELECT CONNECTION_ID()").rows[0][0])) != told_id
    if not pooled:
        yield SHOW_LIFE
    replicas = sum(int(_text(row[1])) for row in (yield REPLICAS).rows)
    meta = yield from _meta()
    if int(meta.get(b"version", b"0")) < VERSION:
        yield from _create("is of an older version" if meta else "is not there")
        meta = yield from _meta()
    if (version := meta.get(b"version", b"none")) != b"%d" % VERSION:
        raise Misconfigured(
            f"the lock table has version {version.decode()}, and this holdfast works with {VERSION}; "
            "use the same holdfast everywhere, and run the output of its `holdfast schema mysql`"
        )
    return Greeting(facts, replicas, pooled, meta[b"cluster"].decode())


def _meta() -> Generator[bytes, QueryReply, dict[bytes, bytes]]:
    """Empty if the lock table is not there, or only in part: these words are the last that is made."""
    try:
        rows = (yield META).rows
    except Refused as error:
        if error.code == NO_SUCH_CODE:
            return {}
        raise Misconfigured(
            f"the lock table cannot be read by this user: {error}; grant what the head of `holdfast schema mysql` names"
        ) from error
    return {word or b"": value or b"" for word, value in rows}


def _create(why: str) -> Generator[bytes, QueryReply, None]:
    yield CREATING
    refusal: Refused | None = None
    try:
        for statement in statements(schema()):  # noqa: UP028  replies are thrown in where they are refused
            yield statement
    except Refused as error:
        refusal = error
    yield CREATED  # not in a `finally`: where the connection has ended, there is nobody to say it to
    if refusal is not None:
        raise Misconfigured(
            f"the lock table {why}, and cannot be made by this user: {refusal}; let somebody who may run the output of "
            "`holdfast schema mysql` in this database"
        ) from refusal


def _check(facts: dict[str, str]) -> None:
    version = facts.get("version", "")
    if "MariaDB" not in version:
        raise Misconfigured(
            f"this server is {version or 'unknown'}, not MariaDB, for which the tables are made; use another engine"
        )
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if numbers < OLDEST:
        raise Misconfigured(f"this server is MariaDB {version}; 10.6 or later is needed")
    for setting in ("read_only", "innodb_read_only"):
        if facts.get(setting, "OFF") not in ("OFF", "0"):
            raise Misconfigured(f"{setting} is on: this server can only be read; connect to the primary")


def promises_of(greeting: Greeting) -> Promises:
    """What this server can keep, by its settings of the moment."""
    facts = greeting.facts
    notes = {}
    flush = facts.get("innodb_flush_log_at_trx_commit")
    if flush != "1":
        what = "the machine" if flush in ("2", "3") else "the server"
        notes["durable"] = f"innodb_flush_log_at_trx_commit is {flush}; a crash of {what} loses the last grants"
    elif facts.get("log_bin") == "ON" and facts.get("sync_binlog") != "1":
        notes["durable"] = f"sync_binlog is {facts.get('sync_binlog')}; a crash of the machine loses the last grants"
    if facts.get("wsrep_on") == "ON":
        notes["linearizable"] = (
            "in a Galera cluster a row lock holds on one node only; send all clients to the same node"
        )
    elif greeting.replicas and facts.get("rpl_semi_sync_master_enabled") != "ON":
        notes["linearizable"] = (
            "a replica follows asynchronously; promoted, it may grant again what the primary had granted. "
            "Use semi-synchronous replication (tokens do not go back either way)"
        )
    return Promises(KEPT | ({"durable", "linearizable"} - notes.keys()), notes)


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")
