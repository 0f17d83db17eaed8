"""The tools by hand in SQL, the same for every database but for its dialect."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from bench.holdfast_tools import new_keys
from bench.measures.tools import RESULT, TOLD_COUNT
from bench.model import Target
from bench.tool_model import BY_HAND, OPEN, Tool, ToolContender

EVENT = '{"amount":100}'


class SqlSession(NamedTuple):
    """A connection in autocommit mode."""

    execute: Callable[..., object]
    fetch: Callable[[], tuple[object, ...] | None]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a database says it."""

    tables: tuple[str, ...]
    """Statements that make them, unless they are there: `hand_once`, `hand_event`, `hand_message` and `hand_state`."""
    claim: str
    """Insert a key into `hand_once`, unless it is there."""
    place: str
    """For a value: ? or %s."""
    session: Callable[[Target], AbstractContextManager[SqlSession]]


def by_hand(dialect: Dialect) -> tuple[ToolContender, ...]:
    """The four tools in this dialect."""
    place = dialect.place

    def once(sql: SqlSession, key: str) -> object:
        sql.execute(dialect.claim, (key,))
        statement = f"UPDATE hand_once SET result = {place} WHERE name = {place} AND result IS NULL"
        return sql.execute(statement, (RESULT, key))

    def first_call(sql: SqlSession) -> Callable[[], object]:
        keys = new_keys()
        return lambda: once(sql, next(keys))

    def replay(sql: SqlSession) -> Callable[[], object]:
        once(sql, "known")

        def call() -> object:
            sql.execute(f"SELECT result FROM hand_once WHERE name = {place}", ("known",))
            return sql.fetch()

        return call

    def append(sql: SqlSession) -> Callable[[], object]:
        stream, versions = uuid.uuid4().hex, itertools.count(1)

        def call() -> None:
            sql.execute("BEGIN")
            sql.execute(f"INSERT INTO hand_event VALUES ({place}, {place}, {place})", (stream, next(versions), EVENT))
            sql.execute("COMMIT")

        return call

    def tell(sql: SqlSession) -> Callable[[], object]:
        def call() -> None:
            sql.execute(f"INSERT INTO hand_message (name, body) VALUES ({place}, '1')", ("account",))
            sql.execute("BEGIN")
            sql.execute(f"SELECT id FROM hand_message WHERE name = {place} ORDER BY id LIMIT 1", ("account",))
            found = sql.fetch()
            assert found is not None
            sql.execute(f"UPDATE hand_state SET value = value + 1 WHERE name = {place}", ("account",))
            sql.execute(f"DELETE FROM hand_message WHERE id = {place}", (found[0],))
            sql.execute("COMMIT")

        def calls() -> None:
            for _ in range(TOLD_COUNT):
                call()

        return calls

    def opened(make: Callable[[SqlSession], Callable[[], object]]) -> OPEN:
        @contextmanager
        def open_tool(target: Target) -> Iterator[Callable[[], object]]:
            with dialect.session(target) as sql:
                for table in dialect.tables:
                    sql.execute(table)
                yield make(sql)

        return open_tool

    def contender(tool: Tool, make: Callable[[SqlSession], Callable[[], object]], count: int = 1) -> ToolContender:
        return ToolContender(tool, BY_HAND, "floor", opened(make), count)

    return (
        contender("once, first call", first_call),
        contender("once, replay", replay),
        contender("append of an event", append),
        contender("tell and handle a message", tell, TOLD_COUNT),
    )
