"""How 10.11 describes the columns of our results."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from holdfast.backends.mysql.short_cuts import NOW

from .packets import BLOB, LONG, LONG_BLOB, LONGLONG, MEDIUM_BLOB, TINY, UTF8, VAR_STRING, Column

NOT_NULL, KEY, BINARY_FLAG, NO_DEFAULT, NUMBER = 0x01, 0x02, 0x80, 0x1000, 0x8000


def function(text: bytes, length: int = 1, flags: int = BINARY_FLAG, kind: int = LONG) -> Column:
    """The value of a function, which is named by its own text."""
    return Column(text, kind, length, flags)


def variable(name: bytes, length: int, kind: int, flags: int = 0) -> Column:
    """A variable of a procedure."""
    return Column(name, kind, length, flags, origin=name)


def joined(text: bytes, length: int, kind: int = VAR_STRING) -> Column:
    """The text that a procedure puts together."""
    return Column(text, kind, length, 0, UTF8, 39)


TAKEN = (
    Column(b"CONCAT_WS(',', token_, after_, ahead, other, mark_, note_)", VAR_STRING, 416, BINARY_FLAG, decimals=39),
)
TAKEN_ALL = (Column(b"SUBSTRING(reply, 2)", MEDIUM_BLOB, 16777214, BINARY_FLAG, decimals=39),)
MADE = (Column(b"granted", VAR_STRING, 342, BINARY_FLAG, decimals=39),)
RECOVERED = (variable(b"live", 1, TINY),)
RELEASED = (Column(b"CONCAT(held, told)", LONG_BLOB, 16777216, BINARY_FLAG, decimals=39),)
LOOKED_ALL = (Column(b"CONCAT(SUBSTRING(reply, 2), told)", LONG_BLOB, 16777216, BINARY_FLAG, decimals=39),)
LEFT_ALL = (Column(b"CONCAT(reply, told)", LONG_BLOB, 16777216, BINARY_FLAG, decimals=39),)
RENEWED = (joined(b"SUBSTRING(reply, 2)", 262136, BLOB),)
EVICTED = (variable(b"ended", 1, TINY),)
ALLOWED = (joined(b"CONCAT_WS(',', wait_ <= reserve, wait_)", 88),)
TIDIED = (variable(b"last_", 1100, VAR_STRING, BINARY_FLAG),)
SESSION_TAKEN = (variable(b"token_", 20, LONGLONG),)


def column_of(schema: str, alias: str, table: str) -> Callable[[str, int, int, int], Column]:
    def column(name: str, kind: int, length: int, flags: int) -> Column:
        words = (schema.encode(), alias.encode(), table.encode(), name.encode())
        return Column(words[3], kind, length, flags, schema=words[0], alias=words[1], table=words[2], origin=words[3])

    return column


@lru_cache
def meta(schema: str) -> tuple[Column, ...]:
    column = column_of(schema, "holdfast_meta", "holdfast_meta")
    word = column("word", VAR_STRING, 64, NOT_NULL | KEY | BINARY_FLAG | 0x5000)
    return word, column("value", VAR_STRING, 1100, NOT_NULL | BINARY_FLAG | NO_DEFAULT)


@lru_cache
def pushes(schema: str) -> tuple[Column, ...]:
    column = column_of(schema, "holdfast_push", "holdfast_push")
    owner = column("owner", VAR_STRING, 255, NOT_NULL | KEY | BINARY_FLAG | 0x5000)
    note = column("note", VAR_STRING, 320, BINARY_FLAG)
    return owner, column("token", LONGLONG, 20, NOT_NULL | NO_DEFAULT), note


@lru_cache
def settings(table: str) -> tuple[Column, ...]:
    def column(name: bytes, origin: bytes, length: int) -> Column:
        where = table.encode()
        schema = b"information_schema"
        return Column(name, VAR_STRING, length, 0x1001, UTF8, 0, schema, where, where, origin)

    return column(b"Variable_name", b"VARIABLE_NAME", 256), column(b"Value", b"VARIABLE_VALUE", 16384)


@lru_cache
def survey(schema: str) -> tuple[Column, ...]:
    column = column_of(schema, "c", "holdfast_claim")
    text = NOT_NULL | BINARY_FLAG
    return (
        column("name", VAR_STRING, 1100, NOT_NULL | KEY | BINARY_FLAG | 0x5000),
        column_of(schema, "s", "holdfast_claim")("capacity", LONG, 11, NOT_NULL),
        column("owner", VAR_STRING, 255, BINARY_FLAG),
        column("token", LONGLONG, 20, NOT_NULL),
        column("weight", LONG, 11, NOT_NULL),
        column("host", VAR_STRING, 255, text),
        column("pid", LONG, 11, NOT_NULL),
        column("since", LONGLONG, 20, NOT_NULL),
        column("expires", LONGLONG, 20, NOT_NULL),
        column("actor", VAR_STRING, 255, text),
        column("mode", VAR_STRING, 64, text),
        function(b"c.expires > " + NOW + b" AND NOT c.evicted"),
        function(NOW, 21, kind=LONGLONG),
        Column(b"state", VAR_STRING, 28, 0, UTF8, 39),
        column("robust", TINY, 1, NOT_NULL),
        Column(b"note", VAR_STRING, 320, BINARY_FLAG, decimals=39),
    )


def piece(text: bytes) -> Column:
    return Column(text, VAR_STRING, 255, BINARY_FLAG, decimals=39)


def line(number: int) -> bytes:
    return b"SUBSTRING_INDEX(SUBSTRING_INDEX(c.who, '\n', %d), '\n', -1)" % number


def derived(name: str, kind: int, length: int, flags: int) -> Column:
    return Column(name.encode(), kind, length, flags, alias=b"c", origin=name.encode())


ONE = Column(b"1", LONG, 1, NOT_NULL | BINARY_FLAG)
SESSION_SURVEY = (
    derived("name", VAR_STRING, 1100, BINARY_FLAG),
    ONE,
    derived("owner", VAR_STRING, 64, NOT_NULL | BINARY_FLAG),
    derived("token", LONGLONG, 20, NOT_NULL),
    ONE,
    piece(line(3)),
    piece(line(4)),
    derived("since", LONGLONG, 20, NOT_NULL),
    function(NOW + b" + CAST(%b AS SIGNED)" % line(5), 67, kind=LONGLONG),
    piece(b"SUBSTRING_INDEX(c.who, '\n', 1)"),
    piece(line(2)),
    ONE,
    function(NOW, 21, kind=LONGLONG),
)
