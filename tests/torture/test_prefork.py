"""A holder that forks without Python's hooks: its child holds nothing, and one that does is found."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, MutableSequence
from pathlib import Path
from typing import Any, Literal

import pytest

from holdfast.aio.base_coordinator import BaseCoordinator
from holdfast.torture.clients.actor import HeldLease, LockActor
from holdfast.torture.clients.config import ClientConfig
from holdfast.torture.clients.event_loop import LoopLocks
from holdfast.torture.clients.prefork import fork
from holdfast.torture.faults import chosen
from holdfast.torture.history_reader import load
from holdfast.torture.run import Plan, torture

NAME = "door"
TRIES = 12
"""A child may hang (see `prefork`), and which deed comes first is chance."""


@pytest.fixture(params=["threads", "asyncio"])
def actor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LockActor]:
    body: Literal["threads", "asyncio"] = request.param
    config = ClientConfig("c1", f"sqlite://{tmp_path}/locks.db", str(tmp_path), NAME, "unfenced", 60.0, body=body)
    actor = LockActor(config)
    assert actor.connect()
    yield actor
    actor.close()


def told_by_children(actor: LockActor, enough: int) -> set[str]:
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


def test_the_child_of_a_fork_that_told_nobody_can_do_nothing_with_the_lease(actor: LockActor, tmp_path: Path) -> None:
    before = os.getpid()
    assert told_by_children(actor, enough=2) == {""}
    assert os.getpid() == before, "only the parent comes back"
    releases = [one for one in load(tmp_path).operations if one.verb == "release" and one.process == before]
    assert len(releases) == TRIES
    assert all(one.held for one in releases), "the parent kept its lock, each time"


def uses_tasks(actor: LockActor) -> bool:
    locks: Any = actor.locks
    return isinstance(locks, LoopLocks)


def without_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: nobody looks whether this is another process."""
    modules = [module for name, module in sys.modules.items() if name.startswith("holdfast.")]
    users = [module for module in modules if hasattr(module, "notice_fork")]
    assert len(users) >= 4, "the plant does not fit the code any more"
    for module in users:
        monkeypatch.setattr(module, "notice_fork", lambda: None)


def test_a_child_that_does_not_notice_the_fork_is_found(actor: LockActor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among tasks a second guard stands behind the first (see below), so both are taken away."""
    without_notice(monkeypatch)
    monkeypatch.setattr(BaseCoordinator, "_check_loop", lambda self: None)
    tasks = uses_tasks(actor)
    found = told_by_children(actor, enough=2 if tasks else 3)
    assert found == {"check() passed in a", "release() in a"} | (set() if tasks else {"a"})


def test_a_child_has_another_loop_so_that_its_release_is_refused(
    actor: LockActor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second guard, alone: the child of a coordinator of asyncio cannot run its parent's loop."""
    if not uses_tasks(actor):
        return  # threads have no loop
    without_notice(monkeypatch)
    held = actor.acquire(NAME, 10.0)
    assert isinstance(held, HeldLease)
    child = fork(actor, held, ReleaseFirst())
    assert child.over(wait=True)
    told = child.misuse()
    assert told is not None
    assert "Misconfigured" in told
    assert "belongs to the event loop that it was made in" in told
    assert actor.release(held) is True, "the parent kept its lock"


class ReleaseFirst(random.Random):
    def shuffle(self, x: MutableSequence[Any]) -> None:
        x.sort(key=lambda step: step.__name__ != "_try_release")  # type: ignore[attr-defined]


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
