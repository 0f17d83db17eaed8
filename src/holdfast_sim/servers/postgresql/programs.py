"""What our statements do (`programs.sql`, `schema/`), carried out on the model's tables.

A statement is a generator (it may wait for an advisory lock), which ends with its result. Its values come as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from holdfast._core.line import Place
from holdfast.backends.execute import SECOND_US, Entry
from holdfast.backends.postgresql.programs import SQL
from holdfast.backends.queue_backend import Taken

from ..relational.lock_table import DAY_US, NULLABLE_AT, note_told, words_to
from ..relational.session_tables import HolderRow, WaiterRow
from ..relational.statement_runner import LockWait, Steps
from .messages import CommandDone, MessageRows, Result

if TYPE_CHECKING:
    from .session import PostgreSQLSession

Program: TypeAlias = Callable[["PostgreSQLSession", Sequence[str]], Steps[Result]]
PROGRAMS: dict[bytes, Program] = {}
COLUMNS: dict[bytes, Sequence[bytes]] = {}
ITEM = re.compile(r'"((?:[^"\\]|\\.)*)"')
SESSIONS_SURVEYED = b"name capacity owner token weight host pid since expires actor mode ?column? now".split()
SURVEYED = [*SESSIONS_SURVEYED, b"case", b"robust", b"note"]


def program(name: str, columns: Sequence[bytes] | None = None) -> Callable[[Program], Program]:
    """Make the statement of this name known; it has one column, unless said otherwise."""

    def add(carry_out: Program) -> Program:
        PROGRAMS[SQL[name].text] = carry_out
        found = re.match(rb"SELECT (\w+)\(", SQL[name].text)
        COLUMNS[SQL[name].text] = (found[1] if found else b"?column?",) if columns is None else columns
        return carry_out

    return add


def value(answer: object) -> MessageRows:
    return MessageRows((b"",), [[str(answer).encode()]])


def yes(answer: bool) -> MessageRows:
    return value("t" if answer else "f")


def items(array: str) -> list[str]:
    return [re.sub(r"\\(.)", r"\1", item) for item in ITEM.findall(array)]


def taken_as(taken: Sequence[Taken]) -> MessageRows:
    return value(",".join(f"{numbers_of(one)},{note_told(one.predecessor)}" for one in taken))


def numbers_of(taken: Taken) -> str:
    look_again = round(taken.look_again * SECOND_US)
    return f"{taken.token},{look_again},{taken.ahead},{taken.capacity or 0},{taken.mark}"


# The lock table


@program("take")
def take(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    arrays = [[one] for one in values]
    return (yield from enter_all(session, arrays[:9], values[9], values[10], arrays[11:13], values[13:15]))


@program("enter")
def enter(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    arrays = [items(array) for array in values[:9]]
    modes = [items(array) for array in values[11:13]]
    return (yield from enter_all(session, arrays, values[9], values[10], modes, values[13:15]))


def enter_all(
    session: PostgreSQLSession,
    arrays: Sequence[Sequence[str]],
    queue: str,
    wake: str,
    modes: Sequence[Sequence[str]],
    whence: Sequence[str],
) -> Steps[Result]:
    """`arrays`: names, owners, weights, capacities, fair, ttl, patience, delay, robust; `modes`: actors, modes."""
    yield from ()
    session.server.check_writable("UPDATE")
    now, (host, pid) = session.now_us, whence
    entries = []
    for name, owner, weight, capacity, fair, ttl, patience, delay, robust, actor, mode in zip(
        *arrays, *modes, strict=True
    ):
        spans = (int(ttl), int(patience), int(delay), now, now)
        place = Place(owner, int(weight), fair == "t", *spans, 0, False, wake, actor, mode, host, int(pid))
        place.robust = robust == "t"
        entries.append(Entry(name, place, int(capacity)))
    taken, promoted = session.server.database.table.take(entries, queue == "t", now)
    session.tell(promoted)
    return taken_as(taken)


@program("renew")
def renew(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    yield from ()
    session.server.check_writable("SELECT FOR UPDATE")
    table, now = session.server.database.table, session.now_us
    claims = zip(*map(items, values), strict=True)
    said = [table.renew(name, owner, int(token), now) for name, owner, token in claims]
    return value("{" + ",".join(said) + "}")


@program("release")
def release(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    yield from ()
    session.server.check_writable("UPDATE" if values[2:] == ["0", values[3], "f"] else "SELECT FOR UPDATE")
    name, owner, linger, home, _ = values
    held, promoted = session.server.database.table.release(name, owner, int(linger), session.now_us)
    return value(("t" if held else "f") + told_here(session, promoted, home))


@program("look_all")
def look_all(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    yield from ()
    session.server.check_writable("SELECT FOR UPDATE")
    claims, home = list(zip(items(values[0]), items(values[1]), strict=True)), values[2]
    taken, promoted = session.server.database.table.look_all(claims, home, session.now_us)
    numbers = ",".join(numbers_of(one or Taken(0)) for one in taken)
    return value(numbers + told_here(session, promoted, home))


@program("leave_all")
def leave_all(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    yield from ()
    session.server.check_writable("SELECT FOR UPDATE")
    claims = list(zip(items(values[0]), items(values[1]), strict=True))
    held, promoted = session.server.database.table.leave_all(claims, session.now_us)
    return value("".join("t" if one else "f" for one in held) + told_here(session, promoted, values[2]))


def told_here(session: PostgreSQLSession, promoted: Sequence[Place], home: str) -> str:
    """Who is told by the reply; all others by a notification."""
    session.tell([place for place in promoted if place.wake != home])
    return "".join(f" {words_to(place)}" for place in promoted if place.wake and place.wake == home)


@program("evict")
def evict(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    yield from ()
    session.server.check_writable("INSERT")
    ended, promoted = session.server.database.table.evict(values[0], int(values[1]), session.now_us)
    session.tell(promoted)
    return yes(ended)


@program("recover")
def recover(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    yield from ()
    session.server.check_writable("SELECT FOR UPDATE")
    name, owner, token = values
    return yes(session.server.database.table.recover(name, owner, int(token), session.now_us))


@program("allow")
def allow(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    yield from ()
    session.server.check_writable("SELECT FOR UPDATE")
    step, burst, cost, reserve = map(int, values[1:])
    allowed, wait = session.server.database.table.allow(values[0], step, burst, cost, reserve, session.now_us)
    return value(f"{{{int(allowed)},{wait}}}")


@program("tidy")
def tidy(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    yield from ()
    session.server.check_writable("SELECT FOR UPDATE")
    database, now = session.server.database, session.now_us
    session.tell(database.table.tidy(sorted(database.table.seats), now))
    database.table.tidy_rates(lambda name: True, now)
    tables, holder = database.sessions, session.server.locks.holder
    for name in [
        name for name, row in tables.holders.items() if row.mark < now - DAY_US and holder(row.advisory_key) is None
    ]:
        del tables.holders[name]
    for owner in [owner for owner, row in tables.waiters.items() if not session.server.lives(row)]:
        del tables.waiters[owner]
    return value("")


@program("survey", SURVEYED)
def survey(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    yield from ()
    rows = []
    for row in session.server.database.table.survey(values[0], values[1], session.now_us, values[2] == "t"):
        one = row.place
        texts = (row.name, row.capacity, one.owner, one.token, one.weight, one.host, one.pid, one.since, one.expires)
        live = "t" if one.expires > row.now and not one.evicted else "f"
        told = (*texts, one.actor, one.mode, live, row.now, row.state, "t" if one.robust else "f", row.note)
        rows.append([str(text).encode() or (None if at in NULLABLE_AT else b"") for at, text in enumerate(told)])
    return MessageRows(SURVEYED, rows)


# Session locks


@program("session_try")
def session_try(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    return value((yield from try_lock(session, values)))


@program("session_again")
def session_again(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    token = yield from try_lock(session, values)
    if token or values[4] == "f":
        session.server.database.sessions.waiters.pop(values[2], None)
    return value(token)


def try_lock(session: PostgreSQLSession, values: Sequence[str]) -> Steps[int]:
    key, name, owner, who, queue = values
    if (yield LockWait(int(key), 0.0)):
        session.server.check_writable("UPDATE")
        return mint(session, int(key), name, owner, who)
    if queue == "t":
        session.server.check_writable("INSERT")
        be_seen(session, name, owner, who)
    return 0


@program("session_wait")
def session_wait(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    key, name, owner, who = values
    yield LockWait(int(key))
    session.server.check_writable("UPDATE")
    token = mint(session, int(key), name, owner, who)
    session.server.database.sessions.waiters.pop(owner, None)
    return value(token)


def mint(session: PostgreSQLSession, key: int, name: str, owner: str, who: str) -> int:
    now = session.now_us
    row = HolderRow(0, now, session.number, owner, who, 0, session.server.host.now(), key)
    return session.server.database.sessions.mint(name, row, now, early=False)


def be_seen(session: PostgreSQLSession, name: str, owner: str, who: str) -> None:
    since = max(session.now_us, session.started_us)  # the clock may have been set back
    session.server.database.sessions.queue(owner, WaiterRow(name, since, session.number, who), anew=True)


@program("session_queue")
def session_queue(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    yield from ()
    session.server.check_writable("INSERT")
    be_seen(session, *values)
    return MessageRows((b"",), [[None]])  # nothing, from a function in SQL; one in PL/pgSQL gives an empty text


@program("session_leave", ())
def session_leave(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    yield from ()
    session.server.check_writable("DELETE")
    left = session.server.database.sessions.waiters.pop(values[0], None)
    return CommandDone(b"DELETE %d" % (left is not None))


@program("session_unlock")
def session_unlock(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    yield from ()
    return yes(bool(session.server.locks.unlock(int(values[0]), session.number)))


@program("session_give_up")
def session_give_up(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    yield from ()
    return yes(session.server.kill_query(int(values[0])))


@program("session_alive")
def session_alive(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    yield from ()
    return yes(True)


@program("session_survey", SESSIONS_SURVEYED)
def session_survey(session: PostgreSQLSession, values: Sequence[str]) -> Steps[Result]:
    yield from ()
    first, last, contended = values
    tables, now = session.server.database.sessions, session.now_us
    found = [
        (name, row.mark, row.since, row.owner, row.who)
        for name, row in tables.holders.items()
        if session.server.locks.holder(row.advisory_key) == row.session
    ]
    found += [
        (row.key, 0, row.since, owner, row.who) for owner, row in tables.waiters.items() if session.server.lives(row)
    ]
    waited_for = {row.key for row in tables.waiters.values()}
    rows = []
    for name, token, since, owner, who in sorted(found, key=lambda one: (one[0], one[1] == 0, one[2])):
        if first <= name < last and (contended == "f" or name in waited_for):
            actor, mode, host, pid, ttl = who.split("\n")
            texts = (name, 1, owner, token, 1, host, pid, since, now + int(ttl), actor, mode, "t", now)
            rows.append([str(text).encode() for text in texts])
    return MessageRows(SESSIONS_SURVEYED, rows)
