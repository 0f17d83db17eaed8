"""Statements of session locks, but for the calls of procedures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.backends.mysql.session.codec import QUICK_TAKE, QUICK_UNLOCK, SURVEY

from ..relational.session_tables import HolderRow
from ..relational.statement_runner import LockWait, Steps
from . import columns
from .packets import Done, PacketRows, Result
from .statement_texts import Value, count, hexed, known, literals, prepared, template, text

if TYPE_CHECKING:
    from .session import MariaDBSession


@known(template(SURVEY, contended=rb"[01]", first=rb"x'[0-9a-f]*'", last=rb"x'[0-9a-f]*'"))
def session_survey(session: MariaDBSession, match: re.Match[bytes]) -> Steps[list[Result]]:
    yield from ()
    session.require_table("holdfast_session")
    first, last = text(literals(match[1])[0]), text(literals(match[2])[0])
    tables, holder, now = session.database.sessions, session.server.locks.holder, session.now_us
    awaited = {waiter.key for waiter in tables.waiters.values()}
    found = []
    for key, (_, name) in tables.names.items():
        if not first <= name < last:
            continue
        row = tables.holders.get(key)
        if row is not None and holder(key) == row.session and (match[3] == b"0" or key in awaited):
            found.append((name, row.mark, row.since, row.owner, row.who))
        for owner, waiter in tables.waiters.items():
            if waiter.key == key and holder(f"holdfast-session-{waiter.session}") == waiter.session:
                found.append((name, 0, waiter.since, owner, waiter.who))
    rows = []
    for name, token, since, owner, who in sorted(found, key=lambda one: (one[0], one[1] == 0, one[2])):
        actor, mode, host, pid, ttl = who.split("\n")
        texts = (name, 1, owner, token, 1, host, pid, since, now + int(ttl), actor, mode, 1, now)
        rows.append([str(value).encode() for value in texts])
    return [PacketRows(columns.SESSION_SURVEY, rows)]


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


@prepared(QUICK_UNLOCK)
def quick_unlock(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    yield from ()
    row = session.database.sessions.holders.get(hexed(values[0]))
    if row is None or not session.server.locks.unlock(text(values[1]), session.number):
        return [Done(info=count(0))]
    row.session = 0
    return [Done(1, info=count(1))]
