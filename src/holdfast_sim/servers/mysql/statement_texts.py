"""Statements by their text: those that our clients send, and no others.

1. A statement is known by its whole text, or by a template with values in it (`codec.py`). What is not known is a
   syntax error, as it would be at a server that does not understand it: a model that guesses is worth nothing.
2. Statements that were prepared are known by their text, too, and come with values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from holdfast.backends.mysql.short_cuts import NOW

from ..relational.statement_runner import Steps
from .packets import Result

if TYPE_CHECKING:
    from .session import MariaDBSession

Value: TypeAlias = bytes | int
Handler: TypeAlias = Callable[["MariaDBSession", "re.Match[bytes]"], Steps[list[Result]]]
Prepared: TypeAlias = Callable[["MariaDBSession", Sequence[Value]], Steps[list[Result]]]
LITERAL = re.compile(rb"x'([0-9a-f]*)'|'([^']*)'|(-?\d+)")
HANDLERS: list[tuple[re.Pattern[bytes], Handler]] = []
PREPARED: dict[bytes, Prepared] = {}


def known(pattern: bytes) -> Callable[[Handler], Handler]:
    def add(handler: Handler) -> Handler:
        HANDLERS.append((re.compile(pattern, re.DOTALL), handler))
        return handler

    return add


def template(words: bytes, **values: bytes) -> bytes:
    """A pattern from a statement of ours; each value is a group."""
    names = {name.encode(): b"\0%b\0" % name.encode() for name in values}
    pattern = re.escape(words % ({b"now": NOW} | names))
    for name, value in values.items():
        pattern = pattern.replace(re.escape(b"\0%b\0" % name.encode()), b"(%b)" % value)
    return pattern


def prepared(words: bytes) -> Callable[[Prepared], Prepared]:
    def add(handler: Prepared) -> Prepared:
        PREPARED[words] = handler
        return handler

    return add


def literals(words: bytes) -> list[Value]:
    return [_literal(match) for match in LITERAL.finditer(words)]


def _literal(match: re.Match[bytes]) -> Value:
    if match[3]:
        return int(match[3])
    return bytes.fromhex(match[1].decode()) if match[1] is not None else match[2]


def text(value: Value) -> str:
    assert isinstance(value, bytes)
    return value.decode()


def integer(value: Value) -> int:
    assert isinstance(value, int)
    return value


def hexed(value: Value) -> str:
    """A hash: the name of its user lock."""
    assert isinstance(value, bytes)
    return value.hex()


def count_added(added: int, there: int) -> bytes:
    """What an INSERT of several rows says of itself."""
    return b"Records: %d  Duplicates: %d  Warnings: 0" % (added, there)


def count(affected: int) -> bytes:
    """What an UPDATE says of itself."""
    return b"Rows matched: %d  Changed: %d  Warnings: 0" % (affected, affected)
