"""Statements without values (the simple protocol): the greeting, the tables, settings and LISTEN.

Several in one text are one transaction, and the last result stands for all of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.backends.postgresql.capabilities import Facts
from holdfast.backends.postgresql.programs import FUNCTIONS_VERSION, SQL, VERSION, schema

from ..relational.statement_runner import Steps
from . import errors
from .messages import CommandDone, MessageRows, Result

if TYPE_CHECKING:
    from .session import PostgreSQLSession

CREATING = SQL["creating"].text + b";\n" + schema().encode()
SETTING = re.compile(rb'SET (\w+(?:\.\w+)?) = (\S+)|(LISTEN|UNLISTEN) "(\w+)"|SET SESSION CHARACTERISTICS .*')
CHECK_S = 5.0


def carry_out(session: PostgreSQLSession, words: bytes) -> Steps[Result]:
    yield from ()
    database = session.server.database
    if words == SQL["facts"].text:
        facts = session.server.facts(session.number)
        return MessageRows(
            [name.encode() for name in Facts._fields], [[None if one is None else one.encode() for one in facts]]
        )
    if words == SQL["meta"].text:
        if database.meta is None:
            raise errors.no_relation("holdfast_meta")
        told = [database.meta[key].encode() for key in ("version", "cluster", "revision")]
        return MessageRows((b"value", b"value", b"value", b"pg_has_role", b"bool_and"), [[*told, b"t", b"t"]])
    if words == CREATING:
        session.server.check_writable("CREATE TABLE")
        cluster = f"{session.server.host.chance.getrandbits(48):012x}"
        database.meta = {
            "cluster": cluster,
            **(database.meta or {}),
            "version": str(VERSION),
            "revision": str(FUNCTIONS_VERSION),
        }
        return CommandDone(b"INSERT 0 1")
    if words == SQL["session_bounds"].text:
        session.statement_timeout_s = 0.0
        session.check_s = CHECK_S
        return CommandDone(b"DO")
    if words == b"SELECT 1":
        return MessageRows((b"?column?",), [[b"1"]])
    return settings(session, words)


def settings(session: PostgreSQLSession, words: bytes) -> Result:
    tag = b""
    for part in words.split(b"; "):
        if (match := SETTING.fullmatch(part)) is None:
            raise errors.syntax(words.decode("utf-8", "replace"))
        tag = b"SET"
        if match[3]:
            tag = match[3]
            change = session.channels.add if tag == b"LISTEN" else session.channels.discard
            change(match[4].decode())
        elif match[1] == b"statement_timeout":
            session.statement_timeout_s = int(match[2]) / 1000
        elif match[1] == b"idle_session_timeout":
            session.idle_timeout_s = int(match[2]) / 1000
    return CommandDone(tag)
