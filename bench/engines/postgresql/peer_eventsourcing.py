"""eventsourcing's recorder on PostgreSQL: see `measures/peer_logs`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.measures.peer_logs import eventsourcing_tools
from bench.model import Target

CONTENDERS = ()
NOTE = "locks the whole table for each append; not in the user's transaction; a repeated append is an error"


@contextmanager
def recorder(target: Target) -> Iterator[Any]:
    import psycopg
    from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore

    words = psycopg.conninfo.conninfo_to_dict(target.url)
    store = PostgresDatastore(
        dbname=str(words["dbname"]),
        host=str(words["host"]),
        port=str(words["port"]),
        user=str(words["user"]),
        password=str(words.get("password", "")),
        pool_size=1,
    )
    with store:
        yield PostgresApplicationRecorder(store)


TOOLS = eventsourcing_tools(recorder, NOTE)
