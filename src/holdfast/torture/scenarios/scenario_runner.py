"""Runs scenarios on one engine, each twice: without a fence, and with one. The engine and the clients stay.

Every run has its own namespace, its own folder and its own resource; what a run did to the engine is undone before
the next. The outcome is read from the history by the checkers, as for a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..checkers import judge
from ..clients.config import ClientConfig
from ..engines import TorturedEngine
from ..history import Discipline, Run, now
from ..history_reader import load
from ..recorder import Log
from ..resource import FILE, Resource
from ..sandbox import Sandbox
from .clients import ClientHandle
from .model import Scenario, ScenarioOutcome, ScenarioResult, ScenarioStep

_numbers = iter(range(1, 1 << 30))


class ScenarioRunner:
    """An engine, and the clients of its scenarios."""

    def __init__(self, sandbox: Sandbox, engine: TorturedEngine, folder: Path) -> None:
        self._sandbox = sandbox
        self._engine = engine
        self._folder = folder
        self._clients: dict[str, ClientHandle] = {}
        self._count = 0
        self._replica_is_stale = False
        """The replica no longer follows the data of the primary."""

    def run(self, scenario: Scenario) -> ScenarioResult:
        self._count += 1
        result = ScenarioResult(scenario, self._engine.scheme)
        result.not_run = scenario.why_not(self._engine)
        if not result.not_run:
            result.unfenced = self._run_once(scenario, "unfenced")
            result.fenced = self._run_once(scenario, "claim-before-read")
        return result

    def _run_once(self, scenario: Scenario, discipline: Discipline) -> ScenarioOutcome:
        engine = self._engine
        outcome = ScenarioOutcome(scenario.name, engine.scheme, discipline)
        folder = self._folder / engine.scheme / f"{self._count}-{scenario.name}" / discipline
        steps = scenario.steps_on(engine.scheme)
        names = sorted({step.actor for step in steps if step.actor})
        with Log(folder) as log:
            log.run(Run(engine.scheme, 0, engine.ttl, discipline, scenario.name, clients=len(names), began=now()))
            namespace = f"s{next(_numbers)}"
            Resource(folder / FILE, discipline).close()  # made here: the clients would all make it at the same time
            for name in names:
                client = self._clients.setdefault(name, ClientHandle(self._sandbox, name))
                client.begin(
                    ClientConfig(
                        name,
                        engine.url(name),
                        str(folder),
                        "",
                        discipline,
                        engine.ttl,
                        namespace=namespace,
                        request_timeout=5.0,
                    )
                )
            try:
                for step in steps:
                    self._do(step, outcome)
            finally:
                self._undo(names)
        self._judge(folder, outcome)
        return outcome

    def _do(self, step: ScenarioStep, outcome: ScenarioOutcome) -> None:
        self._replica_is_stale = self._replica_is_stale or step.verb in ("forget", "failover")
        if step.verb in _ENGINE_VERBS:
            _ENGINE_VERBS[step.verb](self._engine, step)
        elif step.verb in _CLIENT_VERBS:
            _CLIENT_VERBS[step.verb](self._clients[step.actor])
        else:
            self._send_step(step, self._clients[step.actor], outcome)

    def _send_step(self, step: ScenarioStep, client: ClientHandle, outcome: ScenarioOutcome) -> None:
        words: dict[str, Any] = {"do": step.verb, "name": step.name}
        if step.verb in ("acquire", "ask", "queue", "again"):
            options = dict(step.options)
            if "ttl" in options:
                options["ttl"] = min(float(str(options["ttl"])) * self._engine.ttl, self._engine.longest_ttl)
            verb = {"queue": "section", "again": "again"}.get(step.verb, "acquire")
            words |= {"do": verb, "timeout": step.patience * self._engine.ttl, "options": options}
        if step.verb == "again" and f"{step.actor} {step.name}" not in outcome.errors:
            return
        match step.verb:
            case "ask" | "queue":
                client.send(**words)
                client.receive(queued=True)
                return
            case "hear":
                answer = client.receive() if client.pending else {"error": ""}
            case _:
                answer = client.call(**words)
        if answer["error"]:
            outcome.errors.setdefault(f"{step.actor} {step.name}", answer["error"])

    def _undo(self, names: list[str]) -> None:
        engine = self._engine
        for name in names:
            self._clients[name].wake()
        if engine.network is not None:
            engine.network.heal("[!r]*>*")
        for node in engine.nodes:
            if node.clock is not None:
                node.clock.move(0.0)
        for name in names:
            client = self._clients[name]
            if client.alive and client.pending:
                client.receive()
            if client.alive:
                client.call(do="close")
        if engine.replica is not None and self._replica_is_stale:
            engine.replica.disown()
            node = engine.nodes[0]  # a promoted replica may number its tokens ahead of its clock: start it empty
            node.kill()
            node.wipe()
            node.start()
        self._replica_is_stale = False

    def _judge(self, folder: Path, outcome: ScenarioOutcome) -> None:
        judgement = judge(load(folder))
        counts = judgement.counts
        outcome.acknowledged, outcome.lost = counts["acknowledged"], counts["lost_updates"]
        outcome.refused = counts["refused"]
        outcome.overlapped = judgement.findings["overlap"].held is False
        outcome.disordered = judgement.findings["tokens"].held is False


def _forget(engine: TorturedEngine, step: ScenarioStep) -> None:
    if engine.forget is not None:
        engine.forget()
        return
    nodes = engine.nodes if step.amount < 0 else [engine.nodes[int(step.amount)]]
    for node in nodes:
        node.kill()
        node.wipe()
    for node in nodes:
        node.start(wait=False)
    for node in nodes:
        node.await_answer()


def _clock(engine: TorturedEngine, step: ScenarioStep) -> None:
    for node in engine.nodes:
        assert node.clock is not None
        node.clock.move(step.amount)


def _lag(engine: TorturedEngine, step: ScenarioStep) -> None:
    assert engine.replica is not None
    engine.replica.lag()


def _fail_over(engine: TorturedEngine, step: ScenarioStep) -> None:
    assert engine.replica is not None
    engine.replica.fail_over()


def _network(verb: str) -> Callable[[TorturedEngine, ScenarioStep], None]:
    def change(engine: TorturedEngine, step: ScenarioStep) -> None:
        assert engine.network is not None
        links = f"{step.actor}>{step.name if verb == 'hold' else '*'}"
        getattr(engine.network, verb)(links)

    return change


def _expire(engine: TorturedEngine, step: ScenarioStep) -> None:
    assert engine.end_sessions is not None
    engine.end_sessions()


def _pass(engine: TorturedEngine, step: ScenarioStep) -> None:
    time.sleep(step.amount * engine.ttl)


_ENGINE_VERBS: dict[str, Callable[[TorturedEngine, ScenarioStep], None]] = {
    "pass": _pass,
    "clock": _clock,
    "forget": _forget,
    "lag": _lag,
    "failover": _fail_over,
    "cut": _network("hold"),
    "heal": _network("heal"),
    "lose": _network("lose"),
    "expire": _expire,
}
_CLIENT_VERBS = {"stop": ClientHandle.stop, "wake": ClientHandle.wake, "kill": ClientHandle.kill}
