"""Statements about sessions: their settings, their end, and the user locks that they hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.backends.mysql.capabilities import CREATING, SHOW_LIFE

from ..relational.statement_runner import LockWait, Steps
from . import columns, errors
from .packets import Done, PacketRows, Result
from .statement_texts import known

if TYPE_CHECKING:
    from .session import MariaDBSession


@known(rb"SET (?:SESSION )?(?:wait_timeout = (\d+)|(?:NAMES|AUTOCOMMIT|autocommit|TRANSACTION|timestamp)\b.*)")
def settings(session: MariaDBSession, match: re.Match[bytes]) -> Steps[list[Result]]:
    yield from ()
    if match[1]:
        session.wait_timeout_s = int(match[1])
    return [Done()]


@known(rb"DO 0")
def nothing(session: MariaDBSession, _: re.Match[bytes]) -> Steps[list[Result]]:
    yield from ()
    return [Done()]


@known(rb"KILL (QUERY|CONNECTION) (\d+)")
def kill(session: MariaDBSession, match: re.Match[bytes]) -> Steps[list[Result]]:
    yield from ()
    number = int(match[2])
    if number not in session.server.sessions:
        raise errors.unknown_thread(number)
    if number == session.number:
        raise errors.interrupted()
    if match[1] == b"QUERY":
        session.server.kill_query(number)
    else:
        session.server.kill_connection(number)
    return [Done()]


def lock_name(session: MariaDBSession, words: bytes) -> str:
    """User locks do not tell upper from lower case."""
    special = {
        b"CONCAT('holdfast-session-', CONNECTION_ID())": f"holdfast-session-{session.number}",
        b"CONCAT('holdfast-schema-', LEFT(SHA2(DATABASE(), 256), 32))": f"holdfast-schema-{session.server.name}",
    }
    return special.get(words) or words.strip(b"'").decode().lower()


_LOCK = rb"('[^']*'|" + b"|".join(re.escape(words.split(b"(", 1)[1].rpartition(b", ")[0]) for words in
                                    (SHOW_LIFE, CREATING)) + rb")"  # fmt: skip


@known(rb"SELECT (GET_LOCK\(" + _LOCK + rb", (\d+)\))")
def get_lock(session: MariaDBSession, match: re.Match[bytes]) -> Steps[list[Result]]:
    got = yield LockWait(lock_name(session, match[2]), float(match[3]))
    return [PacketRows([columns.function(match[1])], [[b"%d" % got]])]


@known(rb"SELECT (RELEASE_LOCK\(" + _LOCK + rb"\))")
def release_lock(session: MariaDBSession, match: re.Match[bytes]) -> Steps[list[Result]]:
    yield from ()
    said = session.server.locks.unlock(lock_name(session, match[2]), session.number)
    return [PacketRows([columns.function(match[1])], [[None if said is None else b"%d" % said]])]


@known(rb"SELECT (IS_USED_LOCK\(" + _LOCK + rb"\))")
def is_used_lock(session: MariaDBSession, match: re.Match[bytes]) -> Steps[list[Result]]:
    yield from ()
    holder = session.server.locks.holder(lock_name(session, match[2]))
    return [PacketRows([columns.function(match[1], 10)], [[None if holder is None else b"%d" % holder]])]
