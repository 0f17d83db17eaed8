"""`once`, `log.append` and actors beside statements of PyMySQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from bench import holdfast_tools
from bench.engines.mysql.floor import connect
from bench.measures.sql_tools import Dialect, SqlSession, by_hand
from bench.model import Target

CONTENDERS = ()


@contextmanager
def session(target: Target) -> Iterator[SqlSession]:
    with connect(target) as link, link.cursor() as cursor:
        yield SqlSession(cursor.execute, cursor.fetchone)


@contextmanager
def user_connection(target: Target) -> Iterator[Any]:
    from holdfast.backends.mysql.address import read_url
    from holdfast.log.programs import schema_statements

    with import_module("pymysql").connect(autocommit=False, **read_url(target.url)) as user:
        with user.cursor() as maker:
            for statement in schema_statements("mysql"):
                maker.execute(statement)
        yield user


DIALECT = Dialect(
    (
        "CREATE TABLE IF NOT EXISTS hand_once (name varbinary(200) PRIMARY KEY, result text) ENGINE = InnoDB",
        (
            "CREATE TABLE IF NOT EXISTS hand_event "
            "(stream varbinary(200), version bigint, body text, PRIMARY KEY (stream, version))"
        ),
        (
            "CREATE TABLE IF NOT EXISTS hand_message "
            "(id serial PRIMARY KEY, name varbinary(200), body text, KEY (name, id))"
        ),
        "CREATE TABLE IF NOT EXISTS hand_state (name varbinary(200) PRIMARY KEY, value bigint) ENGINE = InnoDB",
        "INSERT IGNORE INTO hand_state VALUES ('account', 0)",
    ),
    "INSERT IGNORE INTO hand_once (name) VALUES (%s)",
    "%s",
    session,
)
TOOLS = (*by_hand(DIALECT), *holdfast_tools.ONCE, holdfast_tools.append(user_connection), holdfast_tools.TELL)
