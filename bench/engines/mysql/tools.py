"""`once`, `log.append` and actors beside statements of PyMySQL."""

from __future__ import annotations

from importlib import import_module

from bench.engines.mysql.floor import connect
from bench.measures.sql_tools import Dialect
from bench.measures.sql_tools import figures as sql_figures
from bench.model import Target
from bench.outcomes import Figure

CONTENDERS = ()
DIALECT = Dialect(
    (
        "CREATE TABLE hand_once (name varbinary(200) PRIMARY KEY, result text) ENGINE = InnoDB",
        "CREATE TABLE hand_event (stream varbinary(200), version bigint, body text, PRIMARY KEY (stream, version))",
        "CREATE TABLE hand_message (id serial PRIMARY KEY, name varbinary(200), body text, KEY (name, id))",
        "CREATE TABLE hand_state (name varbinary(200) PRIMARY KEY, value bigint) ENGINE = InnoDB",
        "INSERT INTO hand_state VALUES ('account', 0)",
    ),
    "INSERT IGNORE INTO hand_once (name) VALUES (%s)",
    "%s",
)


def figures(target: Target, quick: bool) -> list[Figure]:
    from holdfast.backends.mysql.address import read_url
    from holdfast.log.programs import schema_statements

    user = import_module("pymysql").connect(autocommit=False, **read_url(target.url))
    with connect(target) as link, link.cursor() as cursor, user:
        with user.cursor() as maker:
            for statement in schema_statements("mysql"):
                maker.execute(statement)
        return sql_figures(target, DIALECT, cursor.execute, cursor.fetchone, user, quick)
