"""The first statements on a connection: what the server is, and the tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.backends.mysql.capabilities import FACTS, META, REPLICAS
from holdfast.backends.mysql.programs import VERSION, schema, statements

from ..relational.statement_runner import Steps
from . import columns, errors
from .packets import Done, PacketRows, Result
from .statement_texts import known

if TYPE_CHECKING:
    from .session import MariaDBSession

SCHEMA = frozenset(statements(schema()))


@known(re.escape(FACTS))
def facts(session: MariaDBSession, _: re.Match[bytes]) -> Steps[list[Result]]:
    yield from ()
    rows = [[name.encode(), value.encode()] for name, value in sorted(session.server.facts().items())]
    return [PacketRows(columns.settings("SESSION_VARIABLES"), rows)]


@known(re.escape(REPLICAS))
def replicas(session: MariaDBSession, _: re.Match[bytes]) -> Steps[list[Result]]:
    yield from ()
    return [PacketRows(columns.settings("SESSION_STATUS"), [[b"Slaves_connected", b"%d" % session.server.replicas]])]


@known(rb"SELECT CONNECTION_ID\(\)")
def connection_id(session: MariaDBSession, _: re.Match[bytes]) -> Steps[list[Result]]:
    yield from ()
    column = columns.function(b"CONNECTION_ID()", 10, 0xA1)
    return [PacketRows([column], [[b"%d" % session.number]])]


@known(re.escape(META))
def meta(session: MariaDBSession, _: re.Match[bytes]) -> Steps[list[Result]]:
    yield from ()
    if (found := session.database.meta) is None:
        raise errors.no_table(session.server.name, "holdfast_meta")
    return [
        PacketRows(columns.meta(session.server.name), [[key.encode(), found[key].encode()] for key in sorted(found)])
    ]


def make_schema(session: MariaDBSession, words: bytes) -> Steps[list[Result]]:
    yield from ()
    database = session.database
    if words.startswith(b"SET "):
        return [Done()]
    session.server.check_writable("holdfast_meta")
    if words.startswith((b"CREATE", b"ALTER")):
        if b"EXISTS holdfast_meta" in words and database.meta is None:
            database.meta = {}
        return [Done()]
    assert database.meta is not None
    values = {"cluster": f"{session.chance.getrandbits(48):012x}", "version": str(VERSION)}
    key = next(key for key in values if f"'{key}'".encode() in words)
    new = key not in database.meta
    if new or key != "cluster":
        database.meta[key] = values[key]
    return [Done(1 if new else 0 if key == "cluster" else 2)]
