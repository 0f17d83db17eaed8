"""eventsourcing's recorder on SQLite: see `measures/peer_logs`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.measures.peer_logs import eventsourcing_tools
from bench.model import Target

CONTENDERS = ()
NOTE = "not in the user's transaction; a repeated append is an error"


@contextmanager
def recorder(target: Target) -> Iterator[Any]:
    from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

    store = SQLiteDatastore(str(target.folder / "eventsourcing.db"))
    try:
        with store.get_connection(commit=True) as link:  # the pool gives this one out again
            link.cursor().execute("PRAGMA synchronous = NORMAL")  # as everybody here
        yield SQLiteApplicationRecorder(store)
    finally:
        store.close()


TOOLS = eventsourcing_tools(recorder, NOTE)
