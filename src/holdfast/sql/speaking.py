"""Runs a talk on a blocking connection."""

from __future__ import annotations

from typing import Any, TypeVar

from .statements import Answer, Denied, Say, Talk
from .voices import SAVEPOINT, Voice, answer_of, locked, voice

T = TypeVar("T")


def speak(connection: Any, talk: Talk[T], known: Voice) -> T:
    """Run a talk to its end."""
    try:
        say = next(talk)
        while True:
            try:
                answer = _said(connection, known, say)
            except Exception as error:
                if not (say.guarded and locked(error)):
                    raise
                say = talk.throw(Denied())
            else:
                say = talk.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result


def dialect_of(connection: Any) -> Voice:
    return voice(connection, asynchronous=False)


def _said(connection: Any, known: Voice, say: Say) -> Answer:
    if not say.guarded or known.dialect != "postgresql":
        if say.text == "BEGIN IMMEDIATE" and _in_transaction(connection, known):
            return Answer([], 0)
        return _execute(connection, known, say)
    _execute(connection, known, Say(f"SAVEPOINT {SAVEPOINT}"))
    try:
        answer = _execute(connection, known, say)
    except BaseException:
        _execute(connection, known, Say(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}"))
        _execute(connection, known, Say(f"RELEASE SAVEPOINT {SAVEPOINT}"))
        raise
    _execute(connection, known, Say(f"RELEASE SAVEPOINT {SAVEPOINT}"))
    return answer


def _in_transaction(connection: Any, known: Voice) -> bool:
    """Of SQLite: a transaction of the user's is open, and will write when it writes."""
    return known.library == "sqlite3" and connection.in_transaction


def _execute(connection: Any, known: Voice, say: Say) -> Answer:
    text, values = known.write(say)
    if known.library == "sqlalchemy":
        result = connection.execute(text, values)
        rows = [dict(row) for row in result.mappings()] if result.returns_rows else []
        return Answer(rows, result.rowcount)
    cursor = connection.cursor()
    try:
        cursor.execute(text, values or None) if known.library != "sqlite3" else cursor.execute(text, values)
        return answer_of(cursor, cursor.fetchall() if cursor.description else ())
    finally:
        cursor.close()
