"""Statements of the lock table: calls of procedures, and the plain statements of `codec.py`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.backends.execute import Entry
from holdfast.backends.mysql.codec import RENEW, SURVEY
from holdfast.backends.mysql.short_cuts import QUICK_ENTER, QUICK_RELEASE, QUICK_TAKE

from ..relational.lock_table import NULLABLE_AT, note_of
from ..relational.statement_runner import Steps
from . import columns, errors
from .packets import Done, PacketRows, Result
from .procedures import PROCEDURES, place
from .statement_texts import Value, count, known, literals, prepared, template, text

if TYPE_CHECKING:
    from .session import MariaDBSession


@known(rb"CALL (\w+)\((.*)\)")
def call(session: MariaDBSession, match: re.Match[bytes]) -> Steps[list[Result]]:
    name = match[1].decode()
    if session.database.meta is None or name not in PROCEDURES:
        raise errors.no_procedure(session.server.name, name)
    if not name.startswith("holdfast_session") and name != "holdfast_hear":
        session.server.check_writable("holdfast_claim")
    return (yield from PROCEDURES[name](session, literals(match[2])))


@known(template(RENEW, names=rb"[^)]*", holds=rb".*?"))
def renew(session: MariaDBSession, match: re.Match[bytes]) -> Steps[list[Result]]:
    yield from ()
    session.require_table("holdfast_claim")
    session.server.check_writable("holdfast_claim")
    values, now, renewed, seats = literals(match[2]), session.now_us, 0, session.database.table.seats
    holds = set(zip(map(text, values[::2]), values[1::2], strict=True))
    for name in {text(value) for value in literals(match[1])}:
        for owner, token in holds:
            assert isinstance(token, int)
            if name in seats and (hold := seats[name].hosts) is not None and hold.owner == owner:
                renewed += session.database.table.renew(name, owner, token, now) == "held"
    return [Done(renewed, info=count(renewed))]


@known(template(SURVEY, contended=rb"[01]", first=rb"x'[0-9a-f]*'", last=rb"x'[0-9a-f]*'"))
def survey(session: MariaDBSession, match: re.Match[bytes]) -> Steps[list[Result]]:
    yield from ()
    session.require_table("holdfast_claim")
    first, last = text(literals(match[2])[0]), text(literals(match[3])[0])
    rows, seats = [], session.database.table.seats
    for row in session.database.table.survey(first, last, session.now_us):
        one = row.place
        if match[1] == b"1" and all(place.rank == 0 for place in seats[row.name].line.places):
            continue
        texts = (row.name, row.capacity, one.owner, one.token, one.weight, one.host, one.pid, one.since, one.expires)
        live = int(one.expires > row.now and not one.evicted)
        told = (*texts, one.actor, one.mode, live, row.now, row.state, int(one.robust), row.note)
        rows.append([str(value).encode() or (None if at in NULLABLE_AT else b"") for at, value in enumerate(told)])
    return [PacketRows(columns.survey(session.server.name), rows)]


@prepared(QUICK_TAKE)
def quick_take(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    yield from ()
    session.server.check_writable("holdfast_claim")
    token = session.database.table.quick_take(entry_of(session, values), text(values[14]), session.now_us)
    return [Done(int(token > 0), token, count(int(token > 0)))]


@prepared(QUICK_ENTER)
def quick_enter(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    yield from ()
    session.server.check_writable("holdfast_claim")
    entry, table = entry_of(session, values), session.database.table
    token = table.quick_enter(entry, session.now_us)
    note = note_of(table.seats[entry.name].line.last)
    return [PacketRows(columns.MADE, [[f"{token},{note}".encode()]], binary=True)]


def entry_of(session: MariaDBSession, values: Sequence[Value]) -> Entry:
    owner, texts, name = text(values[0]), [text(value) for value in values[9:12]], text(values[13])
    weight, capacity, fair, ttl, patience, delay, robust, _, pid = (int(value) for value in (*values[1:9], values[12]))
    return Entry(name, place(session, owner, 0, (weight, fair, ttl, patience, delay, robust, pid), texts), capacity)


@prepared(QUICK_RELEASE)
def quick_release(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    yield from ()
    session.server.check_writable("holdfast_claim")
    released = session.database.table.quick_release(text(values[0]), text(values[1]), session.now_us)
    return [Done(int(released), info=count(int(released)))]
