"""A holder that forks without Python's hooks: its child holds nothing, and one that does is found."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from holdfast.torture.clients.actor import Actor, HeldLease
from holdfast.torture.clients.config import ClientConfig
from holdfast.torture.clients.prefork import fork
from holdfast.torture.faults import chosen
from holdfast.torture.history_reader import load
from holdfast.torture.run import Plan, torture

NAME = "door"
TRIES = 12
"""A child may hang (see `prefork`), and which deed comes first is chance."""


@pytest.fixture(params=["threads", "asyncio"])
def actor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Actor]:
    body: Literal["threads", "asyncio"] = request.param
    config = ClientConfig("c1", f"sqlite://{tmp_path}/locks.db", str(tmp_path), NAME, "unfenced", 60.0, body=body)
    actor = Actor(config)
    assert actor.connect()
    yield actor
    actor.close()


def told_by_children(actor: Actor, enough: int) -> set[str]:
    """What children of a holder say, until there are as many different sayings as wanted."""
    said: set[str] = set()
    for seed in range(TRIES):
        held = actor.acquire(NAME, 10.0)
        assert isinstance(held, HeldLease)
        child = fork(actor, held, random.Random(seed))
        assert child.over(wait=True)
        misuse = child.misuse()
        actor.release(held)
        said |= set() if misuse is None else {misuse.partition(" forked child")[0]}
        if len(said) == enough:
            break
    return said


def test_the_child_of_a_fork_that_told_nobody_can_do_nothing_with_the_lease(actor: Actor, tmp_path: Path) -> None:
    before = os.getpid()
    assert told_by_children(actor, enough=2) == {""}
    assert os.getpid() == before, "only the parent comes back"
    releases = [one for one in load(tmp_path).operations if one.verb == "release" and one.process == before]
    assert len(releases) == TRIES
    assert all(one.held for one in releases), "the parent kept its lock, each time"


def test_a_child_that_does_not_notice_the_fork_is_found(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("face", "sync.coordinator", "aio.coordinator", "registry"):
        monkeypatch.setattr(f"holdfast.{module}.notice_fork", lambda: None)
    body: Any = actor.locks
    found = told_by_children(actor, enough=2 if hasattr(body, "loop") else 3)
    assert "check() passed in a" in found
    assert "release() in a" in found or hasattr(body, "loop"), "among tasks it is not seen, cause unknown"


def test_forks_in_a_run_are_counted_and_their_children_are_in_its_history(tmp_path: Path) -> None:
    plan = Plan(seconds=8, seed=3, kinds=tuple(chosen("fork")), disciplines=("claim-before-read",), clients=2)
    result = torture("sqlite", plan, tmp_path)
    assert result.errors == []
    assert result.passed
    assert result.faults["fork"] > 0
    ((history, _),) = result.trials
    children = {one.process for one in history.operations if one.name.endswith("/child")}
    parents = {one.process for one in history.operations if one.verb == "write"}
    assert children
    assert not children & parents


def test_what_a_child_could_do_fails_the_run(tmp_path: Path) -> None:
    from holdfast.torture.clients.process import ClientProcess
    from holdfast.torture.history import FaultRecord
    from holdfast.torture.sandbox import Sandbox

    noted: list[FaultRecord] = []
    config = ClientConfig("c1", f"sqlite://{tmp_path}/locks.db", str(tmp_path), NAME, "unfenced", 60.0)
    with Sandbox("hf-prefork-") as sandbox:
        client = ClientProcess(sandbox, config, noted.append)
        client.hear({"fault": "fork", "time": 1, "misuse": "it held"})
        client.hear({"fault": "fork", "time": 1, "misuse": ""})
        client.close()
        assert client.ended()
    assert client.failures == ["client c1: it held"]
    assert [fault.note for fault in noted] == ["it held", ""]
