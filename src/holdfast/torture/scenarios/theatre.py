"""Plays scenarios on one engine, each twice: without a fence, and with one. The engine and the puppets stay.

Every telling has its own namespace, its own folder and its own resource; what a telling did to the engine is undone
before the next. The outcome is read from the history by the checkers, as for a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..arena import Site
from ..checkers import judge
from ..clients.order import Order
from ..engines import Engine
from ..history import Discipline, Run, now
from ..reading import load
from ..recorder import Log
from ..resource import FILE, Resource
from .model import Scenario, Shown, Step, Telling
from .puppets import Puppet

_numbers = iter(range(1, 1 << 30))


class Theatre:
    """An engine, and the puppets that play on it."""

    def __init__(self, site: Site, engine: Engine, folder: Path) -> None:
        self._site = site
        self._engine = engine
        self._folder = folder
        self._puppets: dict[str, Puppet] = {}
        self._plays = 0
        self._shaken = False
        """The engine's replica is no longer one of its primary."""

    def show(self, scenario: Scenario) -> Shown:
        self._plays += 1
        shown = Shown(scenario, self._engine.scheme)
        shown.not_run = scenario.why_not(self._engine)
        if not shown.not_run:
            shown.unfenced = self._tell(scenario, "unfenced")
            shown.fenced = self._tell(scenario, "claim-before-read")
        return shown

    def _tell(self, scenario: Scenario, discipline: Discipline) -> Telling:
        engine = self._engine
        telling = Telling(scenario.name, engine.scheme, discipline)
        folder = self._folder / engine.scheme / f"{self._plays}-{scenario.name}" / discipline
        steps = scenario.steps_on(engine.scheme)
        cast = sorted({step.actor for step in steps if step.actor})
        with Log(folder) as log:
            log.run(Run(engine.scheme, 0, engine.ttl, discipline, scenario.name, clients=len(cast), began=now()))
            namespace = f"s{next(_numbers)}"
            Resource(folder / FILE, discipline).close()  # made once: the puppets would make it all at once
            for name in cast:
                puppet = self._puppets.setdefault(name, Puppet(self._site, name))
                puppet.play(
                    Order(
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
                    self._do(step, telling)
            finally:
                self._undo(cast)
        self._judge(folder, telling)
        return telling

    def _do(self, step: Step, telling: Telling) -> None:
        self._shaken = self._shaken or step.verb in ("forget", "failover")
        if step.verb in _TO_THE_ENGINE:
            _TO_THE_ENGINE[step.verb](self._engine, step)
        elif step.verb in _TO_A_PUPPET:
            _TO_A_PUPPET[step.verb](self._puppets[step.actor])
        else:
            self._speak(step, self._puppets[step.actor], telling)

    def _speak(self, step: Step, puppet: Puppet, telling: Telling) -> None:
        words: dict[str, Any] = {"do": step.verb, "name": step.name}
        if step.verb in ("acquire", "ask", "queue", "again"):
            options = dict(step.options)
            if "ttl" in options:
                options["ttl"] = min(float(str(options["ttl"])) * self._engine.ttl, self._engine.longest_ttl)
            verb = {"queue": "section", "again": "again"}.get(step.verb, "acquire")
            words |= {"do": verb, "timeout": step.patience * self._engine.ttl, "options": options}
        if step.verb == "again" and f"{step.actor} {step.name}" not in telling.errors:
            return
        match step.verb:
            case "ask" | "queue":
                puppet.cue(**words)
                puppet.hear(queued=True)
                return
            case "hear":
                answer = puppet.hear() if puppet.pending else {"error": ""}
            case _:
                answer = puppet.tell(**words)
        if answer["error"]:
            telling.errors.setdefault(f"{step.actor} {step.name}", answer["error"])

    def _undo(self, cast: list[str]) -> None:
        engine = self._engine
        for name in cast:
            self._puppets[name].wake()
        if engine.network is not None:
            engine.network.heal("[!r]*>*")
        for node in engine.nodes:
            if node.clock is not None:
                node.clock.move(0.0)
        for name in cast:
            puppet = self._puppets[name]
            if puppet.alive and puppet.pending:
                puppet.hear()
            if puppet.alive:
                puppet.tell(do="rest")
        if engine.replica is not None and self._shaken:
            engine.replica.disown()
            node = engine.nodes[0]  # a promoted replica may number its tokens ahead of its clock: begin anew
            node.kill()
            node.wipe()
            node.start()
        self._shaken = False

    def _judge(self, folder: Path, telling: Telling) -> None:
        judgement = judge(load(folder))
        counts = judgement.counts
        telling.acknowledged, telling.lost = counts["acknowledged"], counts["lost_updates"]
        telling.refused = counts["refused"]
        telling.overlapped = judgement.findings["overlap"].held is False
        telling.disordered = judgement.findings["tokens"].held is False


def _forget(engine: Engine, step: Step) -> None:
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


def _clock(engine: Engine, step: Step) -> None:
    for node in engine.nodes:
        assert node.clock is not None
        node.clock.move(step.amount)


def _lag(engine: Engine, step: Step) -> None:
    assert engine.replica is not None
    engine.replica.lag()


def _fail_over(engine: Engine, step: Step) -> None:
    assert engine.replica is not None
    engine.replica.fail_over()


def _network(verb: str) -> Callable[[Engine, Step], None]:
    def change(engine: Engine, step: Step) -> None:
        assert engine.network is not None
        links = f"{step.actor}>{step.name if verb == 'hold' else '*'}"
        getattr(engine.network, verb)(links)

    return change


def _expire(engine: Engine, step: Step) -> None:
    assert engine.end_sessions is not None
    engine.end_sessions()


def _pass(engine: Engine, step: Step) -> None:
    time.sleep(step.amount * engine.ttl)


_TO_THE_ENGINE: dict[str, Callable[[Engine, Step], None]] = {
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
_TO_A_PUPPET = {"stop": Puppet.stop, "wake": Puppet.wake, "kill": Puppet.kill}
