"""Every fault really happens, has ended when `inject` returns, and is noted; what cannot happen says why."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.errors import Misconfigured
from holdfast.torture.clients.config import ClientConfig
from holdfast.torture.clients.process import ClientProcess
from holdfast.torture.engines import STARTERS, EngineOptions, TorturedEngine, start
from holdfast.torture.engines.redis import command
from holdfast.torture.faults import BY_NAME, KINDS, FaultContext, chosen
from holdfast.torture.history import FaultRecord
from holdfast.torture.run.plan import Plan
from holdfast.torture.sandbox import Sandbox
from holdfast.torture.sandbox.disk import why_not as no_disk
from holdfast.torture.sandbox.location import why_not as no_namespace

EVERYTHING = EngineOptions(clocks=True, small_disk=True, netns=True, replica=True, flushes=True)
TTL = 0.2


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox("hf-faults-") as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def engine(sandbox: Sandbox) -> TorturedEngine:
    return start("redis", sandbox, EVERYTHING)


@pytest.fixture(scope="module")
def noted() -> list[FaultRecord]:
    return []


@pytest.fixture(scope="module")
def clients(
    sandbox: Sandbox, engine: TorturedEngine, noted: list[FaultRecord], tmp_path_factory: pytest.TempPathFactory
) -> list[ClientProcess]:
    folder = str(tmp_path_factory.mktemp("history"))
    config = ClientConfig("c1", engine.url("c1"), folder, "a", "claim-before-read", TTL)
    return [ClientProcess(sandbox, config, noted.append)]


INJECTED = [kind.name for kind in KINDS if kind.weight]


@pytest.mark.parametrize("name", INJECTED)
def test_a_fault_is_injected_healed_and_noted(
    name: str, engine: TorturedEngine, clients: list[ClientProcess], noted: list[FaultRecord]
) -> None:
    kind = BY_NAME[name]
    if reason := kind.reason(engine):
        assert "root" in reason, "with root and the packages of `make test`, a machine can do all of them"
        return
    context = FaultContext(engine, clients, random.Random(1), threading.Event(), noted.append, TTL)
    noted.clear()
    kind.inject(context)
    (fault,) = [fault for fault in noted if fault.fault == name]
    assert fault.begin < fault.end
    assert engine.nodes[0].answers(), "the engine is whole again"
    assert engine.network is not None
    assert clients[0].pid


def test_a_full_disk_is_full_and_then_it_is_not(engine: TorturedEngine) -> None:
    if no_disk():
        assert engine.cannot["disk-full"] == no_disk()
        return
    disk, folder = engine.disks[0], engine.nodes[0].folder.parent / "redis-1"
    disk.fill()
    with pytest.raises(OSError, match="No space left"):
        (folder / "one more").write_bytes(b"x" * 8192)
    disk.clear()
    (folder / "one more").write_bytes(b"x" * 8192)


def test_a_dropped_port_is_silent_and_then_it_is_not(engine: TorturedEngine) -> None:
    node = engine.nodes[0]
    if no_namespace():
        assert engine.cannot["netns"] == no_namespace()
        return
    engine.location.drop(node.port, True)
    try:
        with pytest.raises(TimeoutError):
            command(node.host, node.port, "PING")
    finally:
        engine.location.drop(node.port, False)
    assert node.answers()


def test_after_a_fail_over_what_the_replica_had_not_heard_is_gone(engine: TorturedEngine) -> None:
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


def test_an_engine_does_not_forget_while_a_token_is_ahead_of_its_clock(
    engine: TorturedEngine, noted: list[FaultRecord]
) -> None:
    context = FaultContext(engine, [], random.Random(1), threading.Event(), noted.append, TTL)
    assert context.may_forget()
    BY_NAME["clock-forward"].inject(context)
    assert not context.may_forget()
    assert BY_NAME["amnesia"].conflicts(context)
    assert not BY_NAME["kill-node"].conflicts(context), "this engine remembers what is on its disk"


def test_a_clock_is_not_set_back_behind_what_the_engine_forgot(
    engine: TorturedEngine, noted: list[FaultRecord]
) -> None:
    context = FaultContext(engine, [], random.Random(1), threading.Event(), noted.append, TTL)
    assert not BY_NAME["clock-back"].conflicts(context)
    context.forgot_at = time.time()
    assert BY_NAME["clock-back"].conflicts(context)
    assert not BY_NAME["clock-forward"].conflicts(context)


@pytest.mark.parametrize("scheme", ["sqlite"])
def test_what_an_engine_cannot_suffer_has_a_reason(scheme: str, tmp_path: Path) -> None:
    with Sandbox("hf-faults-") as sandbox:
        engine = start(scheme, sandbox, EVERYTHING)
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
    assert Plan(kinds=tuple(chosen("pause"))).engine_options() == EngineOptions()
    assert Plan().engine_options() == EVERYTHING


def test_every_engine_has_a_starter() -> None:
    from holdfast.backends import SCHEMES

    families = {scheme for scheme in SCHEMES if not scheme.endswith("s") or scheme == "redis"}
    aliases = {"mariadb", "mariadb+session", "postgres", "postgres+session", "unix", "redis+unix"}
    ours = set(STARTERS) | aliases | {"memory", "redis+sentinel"}
    assert families <= ours, "an engine that torture cannot start is not shown to hold anything"
