"""Any sequence of appends, reads and truncations, on every engine, does what lists in memory do."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast.log import (
    ANY,
    NONE,
    AppendConflict,
    EventData,
    Expected,
    Truncated,
    append,
    read,
    tail,
    truncate,
    truncate_log,
)
from tests.log.databases import Database, everywhere

STEPS_COUNT = 80


@dataclass
class Model:
    """What the log should be: the ids of each stream, how many of them are removed, and the order of all."""

    ids: dict[str, list[str]] = field(default_factory=lambda: {f"s{number}": [] for number in range(4)})
    removed: dict[str, int] = field(default_factory=lambda: dict.fromkeys((f"s{number}" for number in range(4)), 0))
    order: list[tuple[str, int]] = field(default_factory=list)

    def left(self) -> list[tuple[str, int]]:
        return [(stream, version) for stream, version in self.order if version > self.removed[stream]]


def append_one(connection: Any, model: Model, chance: random.Random, stream: str, step: int) -> None:
    known = model.ids[stream]
    new = [EventData("happened", step, id=f"{step}.{number}") for number in range(chance.randint(1, 4))]
    choices: list[int | Expected] = [ANY, NONE, len(known), len(known) + 1, max(len(known) - 1, 0)]
    expected = chance.choice(choices)
    fits = expected is ANY or len(known) == (0 if expected is NONE else expected)
    if not fits:
        with pytest.raises(AppendConflict) as caught:
            append(connection, stream, new, expected=expected)
        assert caught.value.actual == len(known)
        return
    assert append(connection, stream, new, expected=expected) == len(known) + len(new)
    model.order += [(stream, len(known) + number) for number in range(1, len(new) + 1)]
    known += [event.id for event in new]


def read_some(connection: Any, model: Model, chance: random.Random, stream: str) -> None:
    known, removed = model.ids[stream], model.removed[stream]
    after, limit = chance.randint(0, len(known) + 1), chance.randint(1, 6)
    if after < removed:
        with pytest.raises(Truncated) as caught:
            read(connection, stream, after=after, limit=limit)
        assert caught.value.removed == removed
    else:
        found = read(connection, stream, after=after, limit=limit)
        assert [event.id for event in found] == known[after : after + limit]


def truncate_some(connection: Any, model: Model, chance: random.Random, stream: str) -> None:
    limit = chance.randint(1, 6)
    if chance.random() < 0.6:
        before, removed = chance.randint(0, len(model.ids[stream]) + 2), model.removed[stream]
        count = truncate(connection, stream, before=before, limit=limit)
        assert count == min(max(0, min(before - 1, len(model.ids[stream])) - removed), limit)
        model.removed[stream] += count
    elif found := tail(connection, allow_truncated=True, limit=1000):
        number = chance.randrange(len(found))
        assert truncate_log(connection, before=found[number].position, limit=limit) == min(number, limit)
        for event in found[: min(number, limit)]:
            model.removed[event.stream] = event.version


@everywhere
@pytest.mark.parametrize("seed", range(3))
def test_the_log_follows_its_model(database: Database, seed: int) -> None:
    connection, model, chance = database.connect(), Model(), random.Random(seed)
    for step in range(STEPS_COUNT):
        stream, draw = f"s{chance.randrange(4)}", chance.random()
        if draw < 0.5 or not model.order:
            append_one(connection, model, chance, stream, step)
        elif draw < 0.75:
            truncate_some(connection, model, chance, stream)
        else:
            read_some(connection, model, chance, stream)
        connection.commit()
        found = tail(connection, allow_truncated=True, limit=1000)
        assert [(event.stream, event.version) for event in found] == model.left()
        assert [event.position for event in found] == sorted(event.position for event in found)
        connection.commit()
