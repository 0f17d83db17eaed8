"""`once`, `log.append` and actors beside prepared statements of psycopg 3."""

from __future__ import annotations

from bench.engines.postgresql.floor import connect
from bench.measures.sql_tools import Dialect
from bench.measures.sql_tools import figures as sql_figures
from bench.model import Target
from bench.outcomes import Figure

CONTENDERS = ()
DIALECT = Dialect(
    (
        "CREATE TABLE hand_once (name text PRIMARY KEY, result text)",
        "CREATE TABLE hand_event (stream text, version bigint, body text, PRIMARY KEY (stream, version))",
        "CREATE TABLE hand_message (id bigserial PRIMARY KEY, name text, body text)",
        "CREATE INDEX ON hand_message (name, id)",
        "CREATE TABLE hand_state (name text PRIMARY KEY, value bigint)",
        "INSERT INTO hand_state VALUES ('account', 0)",
    ),
    "INSERT INTO hand_once (name) VALUES (%s) ON CONFLICT DO NOTHING",
    "%s",
)


def figures(target: Target, quick: bool) -> list[Figure]:
    import psycopg

    with connect(target) as link, psycopg.connect(target.url, prepare_threshold=0) as user, link.cursor() as cursor:
        return sql_figures(target, DIALECT, cursor.execute, cursor.fetchone, user, quick)
