"""The simulated Redis server answers as the real one does, request by request and byte by byte.

What is normalised stands in `redis_sides`; what is played, in `redis_steps`. `LIKENESS_ROUNDS` makes it longer.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from holdfast_sim.servers.redis import queue_lines, queue_programs, script_runner
from holdfast_sim.servers.redis.protocol import Status
from tests.likeness.play import in_pieces, rounds
from tests.likeness.redis_sides import ModelSide, RealSide
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
    real = RealSide(server, CLIENTS, ballots)
    model = ModelSide(Random(seed), CLIENTS, ballots)
    said: list[str] = []
    try:
        for step in itertools.chain(opening(), itertools.islice(Steps(chance, ballots), STEPS_COUNT), closing()):
            pieces_seed = chance.random()
            model.send(step.client, list(in_pieces(step.frame(model), Random(pieces_seed))))
            by_model = model.heard()
            real.send(step.client, list(in_pieces(step.frame(real), Random(pieces_seed))))
            by_real = real.heard(by_model)
            said.append(f"{step.client}: {step.what}")
            for client, (ours, theirs) in enumerate(zip(by_model, by_real, strict=True)):
                how = step.how if client == step.client else ()
                one = [model.normal(tree, how[n] if n < len(how) else "") for n, tree in enumerate(ours)]
                other = [real.normal(tree, how[n] if n < len(how) else "") for n, tree in enumerate(theirs)]
                if one != other:
                    told = "\n".join(said[-12:])
                    return f"seed {seed}, client {client}\n{told}\nmodel {one}\nreal  {other}"
            if by_model[step.client] and by_real[step.client]:
                step.learn(model, by_model[step.client][-1])
                step.learn(real, by_real[step.client][-1])
            if any(reply == ("end", b"") for replies in by_model for reply in replies):
                return None  # a session has been ended: the play is over
    finally:
        real.close()
    return None


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


def _forgets_the_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_programs, "digits", lambda number: b"%d" % number if number % 7 else b"%017d" % number)


@pytest.mark.parametrize("plant", [_never_forgets, _grants_to_the_dead, _forgets_the_mark])
def test_it_bites(plant: Any, real: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert any(difference(real, seed) is not None for seed in range(100))
