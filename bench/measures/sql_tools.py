"""The tools by hand in SQL, the same for every database but for its dialect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.measures import tools
from bench.model import Target
from bench.outcomes import Figure

EVENT = '{"amount":100}'


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a database says it."""

    tables: tuple[str, ...]
    claim: str
    """Insert a key into `hand_once`, unless it is there."""
    place: str
    """For a value: ? or %s."""


def figures(
    target: Target,
    dialect: Dialect,
    execute: Callable[..., object],
    fetch: Callable[[], tuple[object, ...] | None],
    user_connection: object,
    quick: bool,
) -> list[Figure]:
    """`execute` and `fetch` are of a connection in autocommit mode, `user_connection` is not."""
    place = dialect.place
    for table in dialect.tables:
        execute(table)

    def first(key: str) -> None:
        execute(dialect.claim, (key,))
        execute(
            f"UPDATE hand_once SET result = {place} WHERE name = {place} AND result IS NULL",
            (tools.RESULT, key),
        )

    def replay(key: str) -> object:
        execute(f"SELECT result FROM hand_once WHERE name = {place}", (key,))
        return fetch()

    def append(version: int) -> None:
        execute("BEGIN")
        execute(f"INSERT INTO hand_event VALUES ({place}, {place}, {place})", ("bench", version, EVENT))
        execute("COMMIT")

    def tell_and_handle() -> None:
        execute(f"INSERT INTO hand_message (name, body) VALUES ({place}, '1')", ("account",))
        execute("BEGIN")
        execute(f"SELECT id FROM hand_message WHERE name = {place} ORDER BY id LIMIT 1", ("account",))
        found = fetch()
        assert found is not None
        execute(f"UPDATE hand_state SET value = value + 1 WHERE name = {place}", ("account",))
        execute(f"DELETE FROM hand_message WHERE id = {place}", (found[0],))
        execute("COMMIT")

    return [
        *tools.once_figures(target, tools.OnceByHand(first, replay), quick),
        tools.append_figure(user_connection, append, quick),
        tools.tell_figure(target, tell_and_handle, quick),
    ]
