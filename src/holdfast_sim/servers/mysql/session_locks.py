"""Statements of session locks, but for the calls of procedures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.backends.mysql.session.codec import LET_GO, QUICK_ENTER, QUICK_TAKE, QUICK_UNLOCK, SURVEY

from ..relational.session_tables import HolderRow, SessionTables
from ..relational.statement_runner import LockWait, Steps
from . import columns
from .packets import Done, PacketRows, Result
from .procedures import PROCEDURES
from .statement_texts import Value, count, count_added, hexed, known, literals, prepared, template, text

if TYPE_CHECKING:
    from .session import MariaDBSession


@known(template(SURVEY, contended=rb"[01]", first=rb"x'[0-9a-f]*'", last=rb"x'[0-9a-f]*'"))
def session_survey(session: MariaDBSession, match: re.Match[bytes]) -> Steps[list[Result]]:
    yield from ()
    session.require_table("holdfast_session")
    first, last = text(literals(match[2])[0]), text(literals(match[3])[0])
    tables, holder, now = session.database.sessions, session.server.locks.holder, session.now_us
    awaited = {waiter.key for waiter in tables.waiters.values()}
    found = [
        (row.mark, row.since, row.owner, row.who, key)
        for key, row in tables.holders.items()
        if row.session and holder(key) == row.session and (match[1] == b"0" or key in awaited)
    ] + [
        (0, waiter.since, owner, waiter.who, waiter.key)
        for owner, waiter in tables.waiters.items()
        if holder(f"holdfast-session-{waiter.session}") == waiter.session
    ]
    rows = []
    named = [(name_of(tables, who, key), token, since, owner, who) for token, since, owner, who, key in found]
    for name, token, since, owner, who in sorted(named, key=lambda one: (one[0], one[1] == 0, one[2])):
        if not first <= name < last:
            continue
        actor, mode, host, pid, ttl = who.split("\n")[:5]
        texts = (name, 1, owner, token, 1, host, pid, since, now + int(ttl), actor, mode, 1, now)
        rows.append([str(value).encode() for value in texts])
    return [PacketRows(columns.SESSION_SURVEY, rows)]


def name_of(tables: SessionTables, who: str, key: str) -> str:
    """The sixth line, if there is one, and what follows."""
    short = who.split("\n", 5)[5:]
    return short[0] if short else tables.names.get(key, (0, ""))[1]


@known(rb"DELETE FROM holdfast_session_waiter WHERE owner = (x'[0-9a-f]*')")
def leave(session: MariaDBSession, match: re.Match[bytes]) -> Steps[list[Result]]:
    yield from ()
    session.require_table("holdfast_session_waiter")
    left = session.database.sessions.waiters.pop(text(literals(match[1])[0]), None)
    return [Done(int(left is not None))]


@prepared(QUICK_TAKE)
def quick_session_take(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    owner, who, key, lock = text(values[0]), text(values[1]), hexed(values[2]), text(values[3])
    tables, now = session.database.sessions, session.now_us
    old = tables.holders.get(key)
    if old is None or max(old.mark + 1, now) >= old.above or not (yield LockWait(lock, 0.0)):
        return [Done(info=count(0))]
    token = max(old.mark + 1, now)
    tables.holders[key] = HolderRow(token, now, session.number, owner, who, old.above, session.server.host.now())
    return [Done(1, token, count(1))]


@prepared(QUICK_ENTER)
def quick_session_enter(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    owner, who, key, lock = text(values[0]), text(values[1]), hexed(values[2]), text(values[3])
    tables, now = session.database.sessions, session.now_us
    if tables.floor is None or max(now, tables.floor[0]) >= tables.floor[1] or not (yield LockWait(lock, 0.0)):
        return [Done(info=count_added(0, 0))]
    below, above = tables.floor
    old = tables.holders.get(key)
    if old is not None and old.mark + 1 >= above:
        return [Done(1, info=count_added(1, 1))]
    token = max(now, below, 0 if old is None else old.mark + 1)
    tables.holders[key] = HolderRow(token, now, session.number, owner, who, above, session.server.host.now())
    return [Done(1 if old is None else 2, token, count_added(1, int(old is not None)))]


@known(re.escape(LET_GO).replace(b"%b", rb"'(\w+)'", 1).replace(b"%b", rb"CALL (\w+)\((.*)\)"))
def let_go(session: MariaDBSession, match: re.Match[bytes]) -> Steps[list[Result]]:
    session.server.locks.unlock(match[1].decode(), session.number)
    return (yield from PROCEDURES[match[2].decode()](session, literals(match[3])))


@prepared(QUICK_UNLOCK)
def quick_unlock(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    yield from ()
    row = session.database.sessions.holders.get(hexed(values[0]))
    if row is None or not session.server.locks.unlock(text(values[1]), session.number):
        return [Done(info=count(0))]
    row.session = 0
    return [Done(1, info=count(1))]
