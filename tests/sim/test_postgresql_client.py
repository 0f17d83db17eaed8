"""The clients of PostgreSQL over simulated connections to a simulated server, through libpq's simulated handle.

What ships is what runs here: the flows of `backends/postgresql` and `backends/relational`, from the start of a
connection to the release, in several processes. Only libpq itself is another.
"""

from __future__ import annotations

from typing import Any

import pytest

from holdfast._core.flow import Flow
from holdfast.backends.postgresql.connection import PostgreSQLConnection
from holdfast.backends.postgresql.engine import open_engine as open_table
from holdfast.backends.postgresql.session.engine import open_engine as open_session
from holdfast.backends.relational.connection import TOO_LONG, Request
from holdfast.backends.relational.error_mapping import Silence
from holdfast_sim.process import Process
from holdfast_sim.servers.postgresql.server import PostgreSQLServer
from holdfast_sim.servers.postgresql.transport import starter
from holdfast_sim.violation import Violation
from holdfast_sim.world import World
from tests.sim import relational_world
from tests.sim.relational_world import PROCESSES, ROUNDS, SEEDS, TASKS, TIMEOUT_S, Watch

ENGINES = {"postgresql": open_table, "postgresql+session": open_session}


def play(seed: int, scheme: str = "postgresql") -> tuple[World, Watch, PostgreSQLServer]:
    def open_engine(process: Process) -> Any:
        engine: Any = ENGINES[scheme](f"{scheme}://postgres:secret@10.0.0.1/holdfast", "hf", TIMEOUT_S)
        engine.start = starter(process)
        return engine

    return relational_world.play(
        seed, "session" in scheme, lambda host: PostgreSQLServer(host, users={"postgres": "secret"}), open_engine
    )


def play_all(seeds: range) -> None:
    for seed in seeds:
        play(seed)


@pytest.mark.parametrize("scheme", ENGINES)
def test_whatever_the_network_does_nobody_holds_twice_and_everybody_gets_in(scheme: str) -> None:
    grants = 0
    for seed in range(SEEDS):
        _, watch, server = play(seed, scheme)
        grants += watch.grants
        assert len(server.sessions) <= PROCESSES * (TASKS + 5), f"seed {seed}: connections grow"
    assert grants > SEEDS * PROCESSES * TASKS * ROUNDS * 0.8


def test_a_seed_is_a_story() -> None:
    assert len({play(3)[0].timeline.events for _ in range(2)}) == 1


def test_a_reply_that_is_taken_for_anothers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: a connection whose reply did not come in time is used again, and the reply forgotten."""

    def finish(self: PostgreSQLConnection, request: Request, deadline: float) -> Flow[Any]:
        if not (yield from self.until(request, deadline)):
            if request in self._under_way:
                self._under_way.remove(request)  # type: ignore[arg-type]
            raise Silence(TOO_LONG)
        return request.result()

    monkeypatch.setattr(PostgreSQLConnection, "finish", finish)
    with pytest.raises((AssertionError, Violation)):
        play_all(range(10 * SEEDS))
