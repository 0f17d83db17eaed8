"""Every fault really happens, is over when its strike returns, and is noted; what cannot happen says why."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.errors import Misconfigured
from holdfast.torture.arena import Site
from holdfast.torture.arena.disk import why_not as no_disk
from holdfast.torture.arena.place import why_not as no_namespace
from holdfast.torture.clients.order import Order
from holdfast.torture.clients.process import Client
from holdfast.torture.engines import STARTERS, Engine, Wishes, start
from holdfast.torture.engines.redis import command
from holdfast.torture.faults import BY_NAME, KINDS, Stage, chosen
from holdfast.torture.history import Fault
from holdfast.torture.run.plan import Plan

EVERYTHING = Wishes(clocks=True, small_disk=True, netns=True, replica=True, flushes=True)
TTL = 0.2


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site("hf-faults-") as site:
        yield site


@pytest.fixture(scope="module")
def engine(site: Site) -> Engine:
    return start("redis", site, EVERYTHING)


@pytest.fixture(scope="module")
def noted() -> list[Fault]:
    return []


@pytest.fixture(scope="module")
def clients(site: Site, engine: Engine, noted: list[Fault], tmp_path_factory: pytest.TempPathFactory) -> list[Client]:
    folder = str(tmp_path_factory.mktemp("history"))
    order = Order("c1", engine.url("c1"), folder, "a", "claim-before-read", TTL)
    return [Client(site, order, noted.append)]


STRUCK = [kind.name for kind in KINDS if kind.weight]


@pytest.mark.parametrize("name", STRUCK)
def test_a_fault_strikes_heals_and_is_noted(
    name: str, engine: Engine, clients: list[Client], noted: list[Fault]
) -> None:
    kind = BY_NAME[name]
    if reason := kind.reason(engine):
        assert "root" in reason, "with root and the packages of `make test`, a machine can do all of them"
        return
    stage = Stage(engine, clients, random.Random(1), threading.Event(), noted.append, TTL)
    noted.clear()
    kind.strike(stage)
    (fault,) = [fault for fault in noted if fault.fault == name]
    assert fault.begin < fault.end
    assert engine.nodes[0].answers(), "the engine is whole again"
    assert engine.network is not None
    assert clients[0].pid


def test_a_full_disk_is_full_and_then_it_is_not(engine: Engine) -> None:
    if no_disk():
        assert engine.cannot["disk-full"] == no_disk()
        return
    disk, folder = engine.disks[0], engine.nodes[0].folder.parent / "redis-1"
    disk.fill()
    with pytest.raises(OSError, match="No space left"):
        (folder / "one more").write_bytes(b"x" * 8192)
    disk.clear()
    (folder / "one more").write_bytes(b"x" * 8192)


def test_a_dropped_port_is_silent_and_then_it_is_not(engine: Engine) -> None:
    node = engine.nodes[0]
    if no_namespace():
        assert engine.cannot["netns"] == no_namespace()
        return
    engine.place.drop(node.port, True)
    try:
        with pytest.raises(TimeoutError):
            command(node.host, node.port, "PING")
    finally:
        engine.place.drop(node.port, False)
    assert node.answers()


def test_after_a_fail_over_what_the_replica_had_not_heard_is_gone(engine: Engine) -> None:
    assert engine.replica is not None

    def said(*words: str) -> bytes:
        node = engine.nodes[0]
        return command(node.host, node.port, *words)

    said("SET", "heard", "1")
    engine.replica.lag()
    said("SET", "unheard", "1")
    engine.replica.fail_over()
    assert said("GET", "heard") == b"$1\r\n1\r\n"
    assert said("GET", "unheard") == b"$-1\r\n"


def test_an_engine_does_not_forget_while_a_token_is_ahead_of_its_clock(engine: Engine, noted: list[Fault]) -> None:
    stage = Stage(engine, [], random.Random(1), threading.Event(), noted.append, TTL)
    assert stage.may_forget()
    BY_NAME["clock-forward"].strike(stage)
    assert not stage.may_forget()
    assert BY_NAME["amnesia"].conflicts(stage)
    assert not BY_NAME["kill-node"].conflicts(stage), "this engine remembers what is on its disk"


def test_a_clock_is_not_set_back_behind_what_the_engine_forgot(engine: Engine, noted: list[Fault]) -> None:
    stage = Stage(engine, [], random.Random(1), threading.Event(), noted.append, TTL)
    assert not BY_NAME["clock-back"].conflicts(stage)
    stage.forgot_at = time.time()
    assert BY_NAME["clock-back"].conflicts(stage)
    assert not BY_NAME["clock-forward"].conflicts(stage)


@pytest.mark.parametrize("scheme", ["sqlite"])
def test_what_an_engine_cannot_suffer_has_a_reason(scheme: str, tmp_path: Path) -> None:
    with Site("hf-faults-") as site:
        engine = start(scheme, site, EVERYTHING)
        reasons = {kind.name: kind.reason(engine) for kind in KINDS}
    assert reasons["clock-forward"] == "its clock is the machine's boot clock, which nobody can set"
    assert reasons["kill-node"]
    assert [name for name, reason in reasons.items() if not reason] == [
        "cancel", "block-loop", "fork", "pause-aimed", "pause", "kill-client", "starve-client", "amnesia", "disk-full",
    ]  # fmt: skip


def test_a_server_of_the_users_is_left_alone() -> None:
    assert {kind.side for kind in KINDS if not kind.reason(None)} == {"client"}


def test_a_name_that_is_no_fault_is_told() -> None:
    with pytest.raises(
        Misconfigured, match="no fault 'earthquake'; there are: cancel, block-loop, fork, pause-aimed, pause,"
    ):
        chosen("pause,earthquake")


def test_a_plan_prepares_what_its_faults_need() -> None:
    assert Plan(kinds=tuple(chosen("pause"))).wishes() == Wishes()
    assert Plan().wishes() == EVERYTHING


def test_every_engine_has_a_starter() -> None:
    from holdfast.backends import SCHEMES

    families = {scheme for scheme in SCHEMES if not scheme.endswith("s") or scheme == "redis"}
    aliases = {"mariadb", "mariadb+session", "postgres", "postgres+session", "unix", "redis+unix"}
    ours = set(STARTERS) | aliases | {"memory", "redis+sentinel"}
    assert families <= ours, "an engine that torture cannot start is not shown to hold anything"
