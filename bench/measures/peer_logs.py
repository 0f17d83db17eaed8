"""eventsourcing in the place of our log, in two ways: its recorder alone, and the event store that applications use.

The recorder is given bytes; the event store turns an event (a time is all that it has) into JSON, as ours does.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from bench.model import Target
from bench.tool_model import ToolContender

STATE = b'{"amount":100}'


def eventsourcing_tools(
    connect: Callable[[Target], AbstractContextManager[Any]], note: str
) -> tuple[ToolContender, ...]:
    """`connect` opens an application recorder."""

    @contextmanager
    def recorder(target: Target) -> Iterator[Callable[[], object]]:
        with connect(target) as found:
            from eventsourcing.persistence import StoredEvent

            found.create_table()
            stream, versions = uuid.uuid4(), itertools.count(1)
            yield lambda: found.insert_events([StoredEvent(stream, next(versions), "bench:Paid", STATE)])

    @contextmanager
    def event_store(target: Target) -> Iterator[Callable[[], object]]:
        with connect(target) as found:
            from eventsourcing.domain import DomainEvent
            from eventsourcing.persistence import DatetimeAsISO, EventStore, JSONTranscoder, Mapper

            found.create_table()
            transcoder = JSONTranscoder()
            transcoder.register(DatetimeAsISO())
            store = EventStore(Mapper(transcoder), found)
            stream, versions = uuid.uuid4(), itertools.count(1)

            def call() -> None:
                store.put([DomainEvent(stream, next(versions), DomainEvent.create_timestamp())])

            yield call

    return (
        ToolContender("append of an event", "eventsourcing, recorder alone", "peer", recorder, note=note),
        ToolContender("append of an event", "eventsourcing", "peer", event_store, note=note),
    )
