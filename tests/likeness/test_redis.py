"""The simulated Redis server answers as the real one does, request by request and byte by byte.

What is normalised stands in `redis_sides`; what is played, in `redis_steps`. `LIKENESS_ROUNDS` makes it longer.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import closing as closing_links
from random import Random
from typing import Any

import pytest

from holdfast_sim.servers.redis import queue_lines, queue_programs, script_runner
from holdfast_sim.servers.redis.protocol import Status
from holdfast_sim.servers.redis.server import RedisServer as Model
from tests.likeness.play import RealTime, rounds
from tests.likeness.redis_sides import ModelSide, RealSide, first_difference
from tests.likeness.redis_steps import CLIENTS, Steps, closing, opening
from tests.support.redis_server import RedisServer, running

STEPS_COUNT = 60


@pytest.fixture(scope="module")
def real() -> Iterator[RedisServer]:
    with running() as started:
        yield started


def difference(server: RedisServer, seed: int) -> str | None:
    """The first difference of this play, or None."""
    chance = Random(seed)
    base = int(time.time() * 1e6)
    ballots = [base + number for number in range(6)]
    for words in (("FLUSHALL",), ("SCRIPT", "FLUSH"), ("CONFIG", "SET", "maxmemory", "0")):
        server.raw(*words)
    host = RealTime(Random(seed))
    model = ModelSide(host, [Model(host)] * CLIENTS, ballots)
    steps = itertools.chain(opening(), itertools.islice(Steps(chance, ballots), STEPS_COUNT), closing())
    with closing_links(RealSide([server] * CLIENTS, ballots)) as real:
        found = first_difference(model, real, steps, chance)
    return found and f"seed {seed}, {found}"


def test_it_answers_as_the_real_server_does(real: RedisServer) -> None:
    for seed in range(rounds(60)):
        assert (found := difference(real, seed)) is None, found


def _never_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(script_runner.HANDLERS, "script|flush", lambda *_: Status("OK"))
    import holdfast_sim.servers.redis.commands as commands

    monkeypatch.setitem(commands.HANDLERS, "script|flush", lambda *_: Status("OK"))


def _grants_to_the_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    told: Any = queue_lines.reaches

    def reaches(run: Any, place: Any) -> bool:
        told(run, place)
        return True

    monkeypatch.setattr(queue_lines, "reaches", reaches)


def _writes_some_tokens_wider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_programs, "digits", lambda number: b"%d" % number if number % 7 else b"%017d" % number)


@pytest.mark.parametrize("plant", [_never_forgets, _grants_to_the_dead, _writes_some_tokens_wider])
def test_it_bites(plant: Any, real: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert any(difference(real, seed) is not None for seed in range(100)), "a hundred plays have not found it"
