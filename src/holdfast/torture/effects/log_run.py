"""A run with an event log: appenders, followers of the tail, a group of consumers, faults, and what became of events.

1. What was told to be appended is there, once, at the version that was told. An append is there as a whole, or not at
   all; one that was refused is not there.
2. The versions of a stream have no gaps.
3. Whoever follows the tail is given the final order, from its beginning, without a gap.
4. Every event has its effect once, the effects of a partition are in the order of the tail, and their tokens never go
   back: no cursor has gone back, and no zombie has acknowledged.
5. In the end every partition is owned again.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from ... import connect
from ...log import START, RecordedEvent, tail
from .log_process import CONSUMER, PARTITIONS_COUNT, drain, log_at
from .run import EffectsResult, Workload, read_told, wait_until

OWNED_AGAIN_S = 60.0
PAGE_COUNT = 1000


def judge_log(folder: Path, url: str, result: EffectsResult) -> None:
    """Consume the rest, and compare what there is with what workers were told."""
    database = log_at(url, folder)
    with connect(url) as locks, locks.partitions(CONSUMER, shards=PARTITIONS_COUNT) as shards:
        if not wait_until(lambda: len(shards) == PARTITIONS_COUNT, OWNED_AGAIN_S):
            result.violations.append(f"only {list(shards)} of {PARTITIONS_COUNT} partitions are owned again")
            return
        drain(database, shards)
    with closing(database.connect()) as connection:
        events = list[RecordedEvent]()
        while page := tail(connection, after=events[-1].position if events else START, limit=PAGE_COUNT):
            events += page
        effects = database.effects(connection)
    result.violations += stream_violations(events)
    told = [line for _, line in read_told(folder, result)]
    result.violations += append_violations(events, told)
    for file in sorted(folder.glob("*.tail")):
        given = [json.loads(line)[1] for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
        result.violations += tail_violations(events, given, file.stem)
        result.told["followed"] += len(given)
    result.violations += effect_violations(events, effects)


def stream_violations(events: list[RecordedEvent]) -> list[str]:
    """Rules 1 and 2, by what is there."""
    versions: dict[str, list[int]] = {}
    for event in events:
        versions.setdefault(event.stream, []).append(event.version)
    found = [
        f"the versions of {stream} are not 1 to {len(there)}: {there[:20]}"
        for stream, there in versions.items()
        if there != list(range(1, len(there) + 1))
    ]
    times = Counter((event.stream, event.id) for event in events)
    found += [f"{name} is {count} times in {stream}" for (stream, name), count in times.items() if count > 1]
    parts = Counter((event.stream, event.id.rpartition("/")[0], event.data) for event in events)
    return found + [
        f"of the append {key[1]} to {key[0]}, {n} of {key[2]} events are there"
        for key, n in parts.items()
        if n != key[2]
    ]


def append_violations(events: list[RecordedEvent], told: list[dict[str, Any]]) -> list[str]:
    """Rule 1, by what workers were told."""
    versions = {(event.stream, event.id): event.version for event in events}
    found: list[str] = []
    for line in told:
        stream, what = line["key"], line["what"]
        if what == "appended":
            version, ids = line["result"]
            expected = range(version - len(ids) + 1, version + 1)
            if (there := [versions.get((stream, name)) for name in ids]) != list(expected):
                found.append(f"{ids} were appended to {stream} until version {version}, and are at {there}")
        elif what == "conflict":
            found += [
                f"{name} was refused, and is in {stream}" for name in line["result"] if (stream, name) in versions
            ]
        elif what == "torn":
            found.append(f"an append to {stream} was there in part: {line['result']}")
    return found


def tail_violations(events: list[RecordedEvent], given: list[str], worker: str) -> list[str]:
    """Rule 3."""
    order = [event.id for event in events[: len(given)]]
    if given == order:
        return []
    place = next((n for n, (one, other) in enumerate(zip(given, order, strict=False)) if one != other), len(order))
    got, there = given[place : place + 3], order[place : place + 3]
    return [f"{worker} was given {got} as number {place} of the tail, and not {there}"]


def effect_violations(events: list[RecordedEvent], effects: dict[int, list[tuple[str, int]]]) -> list[str]:
    """Rule 4."""
    places = {event.id: number for number, event in enumerate(events)}
    times = Counter(event for there in effects.values() for event, _ in there)
    found = [f"the effect of {event} was done {count} times" for event, count in times.items() if count > 1]
    found += [f"the effect of {event} was lost" for event in places if event not in times]
    found += [f"there is an effect of {event}, which is not in the log" for event in times if event not in places]
    for part, there in effects.items():
        order = [places.get(event, -1) for event, _ in there]
        if order != sorted(order):
            found.append(f"the cursor of partition {part} went back")
        tokens = [token for _, token in there]
        if tokens != sorted(tokens):
            found.append(f"the tokens of partition {part} went back")
    return found


LOG = Workload(
    "log",
    "holdfast.torture.effects.log_process",
    ("sqlite", "postgresql", "mysql", "redis"),
    judge_log,
    lambda folder, url: log_at(url, folder).create(),
    stops=0.1,  # of a consumer, which polls much less often than others append
)
