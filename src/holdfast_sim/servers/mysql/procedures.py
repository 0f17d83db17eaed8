"""What our procedures do, carried out on the model's tables.

A procedure is a generator (it may wait for a user lock), which ends with its results.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from holdfast._core.line import Place
from holdfast.backends.execute import SECOND_US, Entry
from holdfast.backends.queue_backend import Taken

from ..relational.lock_table import DAY_US, note_of, note_told, words_to
from ..relational.session_tables import HolderRow, WaiterRow
from ..relational.statement_runner import LockWait, Steps
from . import columns, errors
from .packets import Column, Done, PacketRows, Result
from .statement_texts import Value, hexed, integer, text

if TYPE_CHECKING:
    from .session import MariaDBSession

Procedure: TypeAlias = Callable[["MariaDBSession", Sequence[Value]], Steps[list[Result]]]
QUARTER_S = 0.25
PUSH_KEPT_US = 60_000_000
SESSIONS_TIDIED_RATIO = 0.0625


def one(described: Sequence[Column], value: object) -> list[Result]:
    """What a CALL answers that ends with a SELECT of one value."""
    return [PacketRows(described, [[None if value is None else str(value).encode()]]), Done()]


def place(session: MariaDBSession, owner: str, wake: int, numbers: Sequence[int], texts: Sequence[str]) -> Place:
    """`numbers`: weight, fair, ttl, patience, delay, robust, pid; `texts`: actor, mode, host."""
    weight, fair, ttl, patience, delay, robust, pid = numbers
    now, told = session.now_us, str(wake) if wake else ""
    actor, mode, host = texts
    made = Place(owner, weight, bool(fair), ttl, patience, delay, now, now, 0, False, told, actor, mode, host, pid)
    made.robust = bool(robust)
    return made


def numbers_of(taken: Taken) -> str:
    look_again = round(taken.look_again * SECOND_US)
    return f"{taken.token},{look_again},{taken.ahead},{taken.capacity or 0},{taken.mark}"


def push(session: MariaDBSession, promoted: Sequence[Place]) -> None:
    """Leave a push for each, and rouse the connections that listen for them."""
    database = session.database
    for one_place in promoted:
        if one_place.wake:
            told = one_place.token, session.now_us, note_of(one_place.after)
            database.pushes[int(one_place.wake), one_place.owner] = told
            ears = session.server.locks.holder(f"holdfast-ears-{one_place.wake}")
            if ears is not None and ears != session.number:
                session.server.kill_query(ears)


def take(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    yield from ()
    name, owner = map(text, values[:2])
    weight, capacity, fair, ttl, patience, delay, robust, queue, wake = map(integer, values[2:11])
    numbers = (weight, fair, ttl, patience, delay, robust, integer(values[14]))
    entry = Entry(name, place(session, owner, wake, numbers, list(map(text, values[11:14]))), capacity)
    [taken], promoted = session.database.table.take([entry], bool(queue), session.now_us)
    push(session, promoted)
    return one(columns.TAKEN, words_of(taken))


def words_of(taken: Taken) -> str:
    return f"{numbers_of(taken)},{note_told(taken.predecessor)}"


def take_all(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    yield from ()
    queue, wake, host, pid = integer(values[1]), integer(values[2]), text(values[3]), integer(values[4])
    entries = []
    for name, owner, weight, capacity, fair, ttl, patience, delay, robust, actor, mode in json.loads(text(values[0])):
        unhexed = [bytes.fromhex(word).decode() for word in (name, owner, actor, mode)]
        numbers = (weight, fair, ttl, patience, delay, robust, pid)
        entries.append(Entry(unhexed[0], place(session, unhexed[1], wake, numbers, [*unhexed[2:], host]), capacity))
    taken, promoted = session.database.table.take(entries, bool(queue), session.now_us)
    push(session, promoted)
    return one(columns.TAKEN_ALL, ",".join(map(words_of, taken)))


def release(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    yield from ()
    name, owner, linger, home = text(values[0]), text(values[1]), integer(values[2]), integer(values[3])
    held, promoted = session.database.table.release(name, owner, linger, session.now_us)
    return one(columns.RELEASED, f"{int(held)}{told_here(session, promoted, home)}")


def told_here(session: MariaDBSession, promoted: Sequence[Place], home: int) -> str:
    """Who is told by the reply; all others by a push."""
    here = [place for place in promoted if home and place.wake == str(home)]
    push(session, [place for place in promoted if place not in here])
    return "".join(f" {words_to(place)}" for place in here)


def look_all(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    yield from ()
    home = integer(values[1])
    taken, promoted = session.database.table.look_all(
        listed(text(values[0])), str(home) if home else "", session.now_us
    )
    numbers = ",".join(numbers_of(each or Taken(0)) for each in taken)
    return one(columns.LOOKED_ALL, numbers + told_here(session, promoted, home))


def leave_all(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    yield from ()
    held, promoted = session.database.table.leave_all(listed(text(values[0])), session.now_us)
    letters = "".join(str(int(each)) for each in held)
    return one(columns.LEFT_ALL, letters + told_here(session, promoted, integer(values[1])))


def listed(claims: str) -> list[tuple[str, str]]:
    """Names and owners; a name that is left out is that of the claim before."""
    words = [bytes.fromhex(word).decode() for word in claims.split(",")]
    found: list[tuple[str, str]] = []
    for at in range(0, len(words) - 1, 2):
        found.append((words[at] or found[-1][0], words[at + 1]))
    return found


def renew(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    yield from ()
    said = []
    for name, owner, token in json.loads(text(values[0])):
        whose, who = bytes.fromhex(name).decode(), bytes.fromhex(owner).decode()
        said.append(session.database.table.renew(whose, who, token, session.now_us))
    return one(columns.RENEWED, ",".join(said))


def evict(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    yield from ()
    ended, promoted = session.database.table.evict(text(values[0]), integer(values[1]), session.now_us)
    push(session, promoted)
    return one(columns.EVICTED, int(ended))


def recover(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    yield from ()
    name, owner, token = text(values[0]), text(values[1]), integer(values[2])
    held = session.database.table.recover(name, owner, token, session.now_us)
    return one(columns.RECOVERED, int(held))


def allow(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    yield from ()
    step, burst, cost, reserve = map(integer, values[1:])
    allowed, wait = session.database.table.allow(text(values[0]), step, burst, cost, reserve, session.now_us)
    return one(columns.ALLOWED, f"{int(allowed)},{wait}")


def hear(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    wake, beside, quarters = map(integer, values)
    pushes = session.database.pushes
    while quarters > 0 and not any(key[0] == wake for key in pushes):
        if (yield LockWait(f"holdfast-session-{beside}", QUARTER_S)):
            session.server.locks.unlock(f"holdfast-session-{beside}", session.number)
            raise errors.alone()
        quarters -= 1
    heard = sorted((owner, token, note) for (whose, owner), (token, _, note) in pushes.items() if whose == wake)
    for owner, *_ in heard:
        del pushes[wake, owner]
    rows = [[owner.encode(), b"%d" % token, note.encode() or None] for owner, token, note in heard]
    return [PacketRows(columns.pushes(session.server.name), rows), Done(len(rows))]


def session_take(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    lock, key, name, owner, who = text(values[0]), hexed(values[1]), text(values[2]), text(values[3]), text(values[4])
    within, queue, seen = map(integer, values[5:])
    tables = session.database.sessions
    token = 0
    if (yield LockWait(lock, float(within))):
        now = session.now_us
        new = key not in tables.holders
        row = HolderRow(0, now, session.number, owner, who, 0, session.server.host.now())
        token = tables.mint(key, row, now, early=True)
        if new and name:
            tables.names[key] = now, name
    elif queue:
        be_seen(session, key, name, owner, who)
    if seen and (token or not queue):
        tables.waiters.pop(owner, None)
    return one(columns.SESSION_TAKEN, token)


def session_queue(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    yield from ()
    be_seen(session, hexed(values[0]), text(values[1]), text(values[2]), text(values[3]))
    return [Done(1 + bool(text(values[1])))]


def be_seen(session: MariaDBSession, key: str, name: str, owner: str, who: str) -> None:
    tables = session.database.sessions
    tables.queue(owner, WaiterRow(key, session.now_us, session.number, who), anew=False)
    if name:
        tables.names[key] = session.now_us, name


def tidy(session: MariaDBSession, values: Sequence[Value]) -> Steps[list[Result]]:
    yield from ()
    database, now, most = session.database, session.now_us, integer(values[0])
    assert database.meta is not None
    after = database.meta.get("tidied", "")
    names = sorted(name for name in database.table.seats if name > after)[:most]
    last = names[-1] if len(names) == most else None
    database.table.tidy_rates(lambda name: name > after and (last is None or name <= last), now)
    if session.server.host.chance.random() < SESSIONS_TIDIED_RATIO:
        tidy_sessions(session, now)
    for key in [key for key, (_, since, _) in database.pushes.items() if since < now - PUSH_KEPT_US]:
        del database.pushes[key]
    push(session, database.table.tidy(names, now))
    database.meta["tidied"] = last or ""
    return one(columns.TIDIED, last)


def tidy_sessions(session: MariaDBSession, now: int) -> None:
    tables, holder = session.database.sessions, session.server.locks.holder
    for key in [key for key, row in tables.holders.items() if row.mark < now - DAY_US and holder(key) is None]:
        del tables.holders[key]
    for owner in [owner for owner, row in tables.waiters.items() if holder(f"holdfast-session-{row.session}") is None]:
        del tables.waiters[owner]
    over = [key for key, (since, _) in tables.names.items() if since < now - DAY_US and key not in tables.holders]
    for key in over:
        del tables.names[key]


PROCEDURES: dict[str, Procedure] = {
    "holdfast_take": take,
    "holdfast_take_all": take_all,
    "holdfast_release": release,
    "holdfast_look_all": look_all,
    "holdfast_leave_all": leave_all,
    "holdfast_renew": renew,
    "holdfast_evict": evict,
    "holdfast_recover": recover,
    "holdfast_allow": allow,
    "holdfast_hear": hear,
    "holdfast_session_take": session_take,
    "holdfast_session_queue": session_queue,
    "holdfast_tidy": tidy,
}
