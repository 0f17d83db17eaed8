"""What a log in Redis costs, counted in commands that the server carries out, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.log import ANY, Consumer, EventData, RecordedEvent, append, read, tail, truncate, truncate_log
from holdfast.log.redis.keys import ALL, stream_key
from tests.log.databases import Database


def fill(client: Any, count: int, stream: str = "s") -> None:
    for begin in range(0, count, 500):
        new = [EventData("added", number) for number in range(begin, min(begin + 500, count))]
        append(client, stream, new, expected=ANY)


def commands(client: Any, call: Callable[[], object]) -> int:
    client.config_resetstat()
    call()
    found = client.info("commandstats")
    return sum(each["calls"] for name, each in found.items() if "config" not in name)


def costs(client: Any, count: int) -> list[int]:
    client.flushall()
    fill(client, count)
    middle = tail(client, limit=60)[-1].position
    calls: list[Callable[[], object]] = [
        lambda: append(client, "s", EventData("added"), expected=count, lease=5),
        lambda: Consumer(client, "billing", lease=5).poll(20),
        lambda: Consumer(client, "billing", lease=5).acknowledge(middle),
        lambda: truncate(client, "s", before=count, limit=20),
        lambda: truncate_log(client, before=middle, limit=20),
        lambda: read(client, "s", after=150, limit=20),
        lambda: tail(client, limit=20, allow_truncated=True),
    ]
    return [commands(client, call) for call in calls]


def test_a_step_costs_the_same_in_a_long_log(redis_database: Database) -> None:
    client = redis_database.connect()
    costs(client, 10)  # the programs are known
    short, long = costs(client, 200), costs(client, 20_000)
    assert short == long
    assert short[0] <= 8, "one program: ids, mark, version; the event, its version, its id, the mark"


def test_a_stream_that_comes_and_goes_leaves_two_numbers(redis_database: Database) -> None:
    client = redis_database.connect()
    for turn in range(60):
        append(client, "s", [EventData("added"), EventData("added")], expected=turn * 2)
        assert truncate(client, "s", before=2**62, limit=1) == 1
        assert truncate(client, "s", before=2**62, limit=1) == 1
        assert truncate(client, "s", before=2**62, limit=1) == 0
    assert client.xlen(ALL) == 0
    assert client.hgetall(stream_key("s")) == {b"last": b"120", b"oldest": b"121"}
    assert append(client, "s", EventData("added"), expected=120) == 121


@pytest.mark.parametrize("by", ["stream", "log"])
def test_memory_is_given_back(redis_database: Database, by: str) -> None:
    client = redis_database.connect()
    used = []
    for turn in range(1, 5):
        fill(client, 10_000)
        last = read(client, "s", after=10_000 * turn - 1)[0]

        def step(last: RecordedEvent = last) -> int:
            if by == "stream":
                return truncate(client, "s", before=last.version)
            return truncate_log(client, before=last.position)

        while step() == 1000:
            pass
        used.append(sum(client.memory_usage(key, samples=0) for key in client.keys("holdfast/log/*")))
    assert client.xlen(ALL) == 1
    assert max(used) < 300 * 1024, "tables of an emptied hash, which Redis shrinks later; and not 40,000 events"
