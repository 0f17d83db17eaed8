"""`once`, `log.append` and actors beside prepared statements of psycopg 3."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from bench import holdfast_tools
from bench.engines.postgresql.floor import connect
from bench.measures.sql_tools import Dialect, SqlSession, by_hand
from bench.model import Target

CONTENDERS = ()


@contextmanager
def session(target: Target) -> Iterator[SqlSession]:
    with connect(target) as link, link.cursor() as cursor:
        yield SqlSession(cursor.execute, cursor.fetchone)


def user_connection(target: Target) -> AbstractContextManager[Any]:
    import psycopg

    return psycopg.connect(target.url, prepare_threshold=0)


DIALECT = Dialect(
    (
        "CREATE TABLE IF NOT EXISTS hand_once (name text PRIMARY KEY, result text)",
        "CREATE TABLE IF NOT EXISTS hand_event (stream text, version bigint, body text, PRIMARY KEY (stream, version))",
        "CREATE TABLE IF NOT EXISTS hand_message (id bigserial PRIMARY KEY, name text, body text)",
        "CREATE INDEX IF NOT EXISTS hand_message_name ON hand_message (name, id)",
        "CREATE TABLE IF NOT EXISTS hand_state (name text PRIMARY KEY, value bigint)",
        "INSERT INTO hand_state VALUES ('account', 0) ON CONFLICT DO NOTHING",
    ),
    "INSERT INTO hand_once (name) VALUES (%s) ON CONFLICT DO NOTHING",
    "%s",
    session,
)
TOOLS = (*by_hand(DIALECT), *holdfast_tools.ONCE, holdfast_tools.append(user_connection), holdfast_tools.TELL)
ZOMBIES = (holdfast_tools.ZOMBIE_ACTOR,)
