"""MariaDB's client over simulated connections, where a seed would seldom come. Seeds are in `test_bytes.py`."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast._core.flow import Call, Flow
from holdfast.backends.mysql.engine import open_engine
from holdfast.backends.queue_backend import Survey
from holdfast_sim.connections import NEVER_S
from holdfast_sim.servers.mysql.server import MariaDBServer
from tests.sim.client_world import ClientWorld, Fate, SimHost


class Unanswered(Fate):
    def accepted(self) -> float:
        return NEVER_S


def test_a_call_that_is_cancelled_while_its_client_dials_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its deadline is far, and the server does not answer."""
    world = ClientWorld(1, faults_end_s=0.0)
    server = world.servers["mariadb", 3306] = MariaDBServer(SimHost(world), users={"root": "secret"})
    process = world.add_process(None)
    opened: list[Any] = []

    def call() -> Flow[None]:
        if not opened:
            opened.append((yield from open_engine("mysql://root:secret@mariadb/holdfast", "hf", 100.0).open()))
            process.client = opened[0].client
        yield Call(Survey(""), 100.0)

    first = process.spawn(call(), "first")
    world.timeline.run(1.0)
    assert first.done
    for session in list(server.sessions.values()):
        session.end()
    world.timeline.run(1.5)
    monkeypatch.setattr(world, "fate", lambda process, endpoint: Unanswered(world))
    second = process.spawn(call(), "second")
    world.timeline.run(2.0)
    assert not second.done
    second.cancel()
    assert second.done
