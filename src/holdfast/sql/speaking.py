"""Runs a talk on a blocking connection."""

from __future__ import annotations

from typing import Any, TypeVar

from .statements import Answer, Meaning, Say, Talk
from .voices import Voice, answer_of, meaning, voice

T = TypeVar("T")


def speak(connection: Any, talk: Talk[T], known: Voice) -> T:
    """Run a talk to its end."""
    try:
        say = next(talk)
        while True:
            try:
                answer = _execute(connection, known, say)
            except BaseException as error:  # noqa: BLE001  the talk raises it again, when it has put things back
                say = talk.throw(meaning(error))
            else:
                say = talk.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    except Meaning as meant:
        raise meant.error from None


def dialect_of(connection: Any) -> Voice:
    return voice(connection, asynchronous=False)


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
