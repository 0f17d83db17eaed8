"""The first words on a new connection: what the server is, whether it can be used, and what it can promise.

It is a generator that yields statements (as bytes; several at once form one transaction) and is sent their rows.

1. A standby, a read-only session, another encoding than UTF8: refused, with what to do.
2. Behind a pooler (the server's own process id is not the one that the connection was told) sessions are mixed: no
   session setting is made, nothing is prepared, and nothing is listened for.
3. Elsewhere the session is set to READ COMMITTED, which the functions stand on, and to a bounded statement.
4. The tables are made where they are missing and the role may. Those of an older version are refused, and functions of
   an older revision work as well; a role that owns them makes both new.
5. There is one lock table in a database, unless `search_path` was set on purpose: with `"$user"` in it (the default)
   two roles would have a table each, and both would hold.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple, TypeAlias

from ...errors import BackendUnavailable, Misconfigured
from ...model import Promises
from ..relational.error_mapping import Refused, Rows
from .programs import FUNCTIONS_VERSION, SQL, VERSION, schema

OLDEST_VERSION = 120000
IDLE_LISTENERS_END_VERSION = 140000
"""The first version that ends a session which is idle for too long."""
LISTENER_REST_S = 60.0
"""For how long a coordinator goes on listening when nobody waits any more, in seconds."""
KEPT = frozenset({"fencing", "shared", "counting"})


class Facts(NamedTuple):
    """What the server said of itself."""

    pid: str
    in_recovery: str
    read_only: str
    version: str
    encoding: str
    isolation: str
    synchronous_commit: str
    fsync: str
    synchronous_standby_names: str
    standbys: str
    has_tables: str
    search_path: str
    schema: str
    schemas: str
    """Where the lock table is that this role sees, and where there are any in this database."""


class Greeting(NamedTuple):
    """What is known after it."""

    facts: Facts
    pooled: bool
    cluster: str
    records: str
    """Why there are none; empty where there are."""


QUERY_CANCELED = "57014"
ANOTHER_TABLE = "HF001"
"""Raised by `creating` in `programs.sql`."""
NOT_GRANTED = "this role may not write to holdfast_record; grant it what the head of `holdfast schema postgresql` names"


Talk: TypeAlias = Generator[bytes, Rows, Greeting]


def greet(told_id: int, request_timeout: float) -> Talk:
    """The talk; ends with a `Greeting`, or raises `Misconfigured`."""
    [row] = yield SQL["facts"].text
    facts = Facts(*((value or b"").decode() for value in row))
    pooled = int(facts.pid) != told_id
    _check(facts, pooled)
    if not pooled:
        wanted = f"SET statement_timeout = {max(1, int(request_timeout * 1000))}"
        if facts.isolation != "read committed":
            wanted += "; SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED"
        yield wanted.encode()
    if facts.has_tables != "t":
        yield from _make("is of an older version" if facts.schema else "is not there")
    try:
        [[version, cluster, revision, owns, writes]] = yield SQL["meta"].text
    except Refused as error:
        raise Misconfigured(
            f"the lock table cannot be read by this role: {error}; grant it what the head of "
            "`holdfast schema postgresql` names"
        ) from error
    if owns == b"t" and int(version or 0) < VERSION:
        yield from _make("is of an older version")
        [[version, cluster, revision, owns, writes]] = yield SQL["meta"].text
    if version != b"%d" % VERSION:
        raise Misconfigured(
            f"the lock table has version {(version or b'none').decode()}, and this holdfast works with {VERSION}; "
            "use the same holdfast everywhere, and run the output of its `holdfast schema postgresql`"
        )
    if owns == b"t" and int(revision or 0) < FUNCTIONS_VERSION:
        try:
            yield _making()
        except Refused:
            pass  # it works as it is
    return Greeting(facts, pooled, (cluster or b"").decode(), "" if writes == b"t" else NOT_GRANTED)


def _make(why: str) -> Generator[bytes, Rows, None]:
    try:
        yield _making()
    except Refused as error:
        if error.code == ANOTHER_TABLE:
            raise _second_table(str(error)) from error
        if error.code == QUERY_CANCELED:
            raise BackendUnavailable(f"the server was too slow to make the lock table: {error}; try again") from error
        raise Misconfigured(
            f"the lock table {why}, and cannot be made by this role: {error}; let somebody who may run "
            "the output of `holdfast schema postgresql`"
        ) from error


def _making() -> bytes:
    return SQL["creating"].text + b";\n" + schema().encode()


def listen(channel: str, greeting: Greeting) -> list[bytes]:
    """Hear what is said on this channel: one statement after the other.

    Every NOTIFY wakes every session of the database that listens. So the server ends one that has been idle for long;
    whoever still waits then listens anew.
    """
    words = [f'LISTEN "{channel}"'.encode()]
    if int(greeting.facts.version) >= IDLE_LISTENERS_END_VERSION:
        words.insert(0, b"SET idle_session_timeout = %d" % (LISTENER_REST_S * 1000))
    return words


def _check(facts: Facts, pooled: bool) -> None:
    if facts.in_recovery == "t":
        raise Misconfigured("this server is a standby, which can only be read; connect to the primary")
    if facts.read_only == "on":
        raise Misconfigured("transactions are read-only here; SET default_transaction_read_only = off for this role")
    if int(facts.version) < OLDEST_VERSION:
        raise Misconfigured(f"this server is PostgreSQL {int(facts.version) // 10000}; 12 or later is needed")
    if facts.encoding != "UTF8":
        raise Misconfigured(f"this database is in {facts.encoding}; names are UTF-8: use a database in UTF8")
    if pooled and facts.isolation != "read committed":
        raise Misconfigured(
            f"transactions are {facts.isolation.upper()} here, and a pooler keeps that from being set per session; "
            "ALTER ROLE … SET default_transaction_isolation = 'read committed'"
        )

    others = [schema for schema in facts.schemas.split(", ") if schema and schema != facts.schema]
    if others and "$user" in facts.search_path:
        raise _second_table(", ".join(others), facts.schema)


def _second_table(others: str, mine: str = "") -> Misconfigured:
    what = f"this role has its own in {mine}" if mine else "this role does not see it, and would make another one"
    return Misconfigured(
        f'there is a lock table in the schema {others}, and {what}, because "$user" is in its search_path: two roles '
        "would hold the same lock. Name one schema for all of them (ALTER ROLE … SET search_path = …, or "
        "?options=-csearch_path%3D… in the URL), and drop the holdfast_… tables of the other"
    )


def promises_of(greeting: Greeting) -> Promises:
    """What this server can keep, by its settings of the moment."""
    facts = greeting.facts
    notes = {}
    if facts.fsync != "on":
        notes["durable"] = "fsync is off; a crash of the machine loses commits, or the whole database"
    elif facts.synchronous_commit == "off":
        notes["durable"] = "synchronous_commit is off; a crash of the server loses the last grants"
    waits = facts.synchronous_standby_names and facts.synchronous_commit not in ("off", "local")
    if int(facts.standbys) and not waits:
        notes["linearizable"] = (
            "a standby follows asynchronously; promoted, it may grant again what the primary had granted. "
            "Set synchronous_standby_names (tokens do not go back either way)"
        )
    if greeting.records:
        notes["records"] = greeting.records
    return Promises(KEPT | ({"durable", "linearizable", "records"} - notes.keys()), notes)
