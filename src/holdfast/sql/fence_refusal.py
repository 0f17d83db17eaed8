"""A refusal, kept in the database of the fence though the user's transaction is rolled back: statements (see there).

1. PostgreSQL: on a connection of its own, made of the parameters of the user's, in a short transaction. It touches no
   row that the user's transaction holds, and waits for nobody for longer than the bounds below.
2. MariaDB: on the user's own connection, in a table without rollback (Aria).
3. SQLite: beside the file (`holdfast.fenced.refusal_store`); here is only the question where that is.
"""

from __future__ import annotations

from typing import Any

from ..errors import Misconfigured
from ..fenced.postgresql.programs import refusal_schema
from ..fenced.refusal import LAST_COUNT, FenceRefusal
from .statements import Exchange, Statement

TABLE = "holdfast_refusal"
CONNECT_TIMEOUT_S = 2
KEEP_TIMEOUT_S = 5.0
"""For all of it, with asyncio."""
LOCK_TIMEOUT_MS, STATEMENT_TIMEOUT_MS, MYSQL_TIMEOUT_S = 1000, 2000, 2


def keep_on_postgresql(search_path: str, resource: str, refusal: FenceRefusal) -> Exchange[None]:
    """In a transaction of its own, with the search path of the user's."""
    yield Statement(
        "SELECT set_config('search_path', {}, true), set_config('lock_timeout', {}, true), "
        "set_config('statement_timeout', {}, true)",
        (search_path, str(LOCK_TIMEOUT_MS), str(STATEMENT_TIMEOUT_MS)),
    )
    result = yield Statement(f"SELECT to_regclass('{TABLE}') IS NULL AS missing")
    if result.rows[0]["missing"]:
        yield Statement(refusal_schema())
    yield Statement(f"LOCK TABLE {TABLE} IN SHARE ROW EXCLUSIVE MODE")  # two at once would count the same number
    yield Statement(
        f"INSERT INTO {TABLE} (resource, number, refused_at, token, mark, owner) "
        "SELECT CAST({} AS text), coalesce(max(number), 0) + 1, clock_timestamp(), CAST({} AS bigint), "
        f"CAST({{}} AS bigint), CAST({{}} AS text) FROM {TABLE} WHERE resource = {{}}",
        (resource, refusal.token, refusal.mark, refusal.owner, resource),
    )
    yield Statement(
        f"DELETE FROM {TABLE} WHERE resource = {{}} AND number <= "
        f"(SELECT max(number) FROM {TABLE} WHERE resource = {{}}) - {LAST_COUNT}",
        (resource, resource),
    )


def keep_on_mysql(resource: str, refusal: FenceRefusal) -> Exchange[None]:
    """In the user's transaction, whose end does not matter (rule 2)."""
    bounds = f"SET STATEMENT lock_wait_timeout = {MYSQL_TIMEOUT_S}, max_statement_time = {MYSQL_TIMEOUT_S} FOR "
    yield Statement(
        f"{bounds}INSERT INTO {TABLE} (resource, number, refused_at, token, mark, owner) "
        f"SELECT {{}}, COALESCE(MAX(number), 0) + 1, NOW(6), {{}}, {{}}, {{}} FROM {TABLE} WHERE resource = {{}}",
        (resource, refusal.token, refusal.mark, refusal.owner, resource),
    )
    yield Statement(
        f"{bounds}DELETE FROM {TABLE} WHERE resource = {{}} AND number <= "
        f"(SELECT number FROM (SELECT MAX(number) - {LAST_COUNT} AS number FROM {TABLE} WHERE resource = {{}}) AS old)",
        (resource, resource),
    )


def search_path() -> Exchange[str]:
    """Of the user's connection: where its tables are."""
    result = yield Statement("SELECT current_setting('search_path') AS path")
    return str(result.rows[0]["path"])


def sqlite_file() -> Exchange[str]:
    """The path of the database; empty if it is in memory."""
    result = yield Statement("PRAGMA database_list")
    return next((str(row["file"] or "") for row in result.rows if row["name"] == "main"), "")


def parameters_of(driver: Any) -> dict[str, Any]:
    """What another connection to the same server is made of, from one of psycopg 3."""
    info: Any = getattr(driver, "info", None)
    if not hasattr(info, "get_parameters"):
        raise Misconfigured(f"a second connection is made of one of psycopg 3, not of {type(driver).__qualname__}")
    parameters = {**info.get_parameters(), "connect_timeout": CONNECT_TIMEOUT_S}
    return {**parameters, "password": info.password} if info.password else parameters
