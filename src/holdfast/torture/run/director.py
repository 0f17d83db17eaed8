"""The director of a run on one engine.

1. One engine and its faults, and a trial for each discipline beside the others: same weather, other resource and name.
2. When the time is over: no more faults, everything healed; clients finish and leave; then a survey, once every ttl has
   passed. Only then the histories are read and judged.
3. Whatever happens, the site ends all that was started.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from ..arena import NotHere, Site
from ..checkers import judge
from ..clients.order import Order, timeouts
from ..clients.process import Client
from ..engines import Engine, start
from ..faults import Stage
from ..history import Discipline, Fault, Run, now
from ..reading import load
from ..recorder import Log
from ..resource import FILE, Resource
from . import leftovers
from .plan import Plan
from .result import Result
from .weather import Weather, chance_of

NAMESPACE = "torture"
Watch = Callable[[str, str, str], None]
"""Told what happens: the engine, what, and to whom."""


class Trial:
    """One discipline on the engine: its folder, its clients, its log."""

    def __init__(self, site: Site, discipline: Discipline, folder: Path) -> None:
        self.discipline = discipline
        self.folder = folder
        self.name = f"torture/{discipline}"
        self.log = Log(folder)
        self.clients: list[Client] = []
        self._site = site

    def begin(self, plan: Plan, url: Callable[[str], str], ttl: float, note: Callable[[Fault], None]) -> None:
        Resource(self.folder / FILE, self.discipline).close()  # made once: its clients would make it all at once
        timeout, request_timeout = timeouts(ttl)
        for number in range(1, plan.clients + 1):
            client = f"{self.discipline[:2]}{number}"
            order = Order(
                client, url(client), str(self.folder), self.name, self.discipline, ttl,
                seed=plan.seed, namespace=NAMESPACE, timeout=timeout, request_timeout=request_timeout,
                think=plan.think or min(0.075 * ttl, 0.03), pause=(0.85 * ttl, 2.2 * ttl), aim={**plan.aimed()},
                body="threads" if number % 2 else "asyncio",
                cancels=0.05 if "cancel" in plan.names() else 0.0,
                blocks=0.02 if "block-loop" in plan.names() else 0.0,
                forks=0.05 if "fork" in plan.names() else 0.0,
            )  # fmt: skip
            self.clients.append(Client(self._site, order, note))


def torture(
    scheme: str,
    plan: Plan,
    folder: Path,
    watch: Watch = lambda *what: None,
    url: str | None = None,
    ending: threading.Event | None = None,
) -> Result:
    """Run one engine of ours (or the user's server at `url`) and judge. `folder` keeps the histories.

    Whoever sets `ending` ends it early; what was done until then is judged.
    """
    result = Result(scheme, plan.seed)
    with Site() as site:
        watch(scheme, "starts", "")
        try:
            engine = None if url else start(scheme, site, plan.wishes())
        except NotHere as error:
            result.not_run = str(error)
            return result
        _run(result, plan, site, engine, url or "", folder, watch, ending or threading.Event())
    return result


def _run(
    result: Result,
    plan: Plan,
    site: Site,
    engine: Engine | None,
    url: str,
    folder: Path,
    watch: Watch,
    wanted: threading.Event,
) -> None:
    ttl = plan.ttl or (engine.ttl if engine is not None else 1.0)
    began = time.monotonic()
    mutex = threading.Lock()

    def url_of(client: str) -> str:
        return url if engine is None else engine.url(client)

    with ExitStack() as stack:
        trials = [Trial(site, discipline, folder / result.scheme / discipline) for discipline in plan.disciplines]
        for trial in trials:
            stack.enter_context(trial.log)

        def note(fault: Fault) -> None:
            with mutex:
                result.faults[fault.fault] += 1
                for trial in trials:
                    if fault.client is None or any(fault.client == client.name for client in trial.clients):
                        trial.log.fault(fault)

        began_at = now()
        for trial in trials:
            trial.begin(plan, url_of, ttl, note)
        clients = [client for trial in trials for client in trial.clients]
        for kind in plan.kinds:
            if reason := kind.reason(engine):
                result.faults_not_run[kind.name] = reason
        ending = threading.Event()
        stages = [
            (side, Stage(engine, clients, chance_of(plan.seed, side), ending, note, ttl, begun=_teller(watch, result)))
            for side in ("client", "engine")
        ]
        watch(result.scheme, "runs", "")
        weather = Weather(plan, stages, ending)
        try:
            wanted.wait(plan.seconds)
        finally:
            ending.set()
            watch(result.scheme, "ends", "")
            weather.over()
            for client in clients:
                client.close()
        result.put_off = weather.put_off
        result.errors += [f"the weather ended: {type(error).__name__}: {error}" for error in weather.errors]
        for client in clients:
            if not client.ended():
                result.errors.append(f"client {client.name} did not end by itself")
            result.errors += client.failures
        left, locks = leftovers.find(url_of("director"), NAMESPACE, [trial.name for trial in trials], ttl)
        forgot = {kind.name for kind in plan.kinds if kind.forgets and result.faults[kind.name]}
        given_up = {"linearizable"} if forgot else set()
        notes = tuple(
            f"one order of grants is not asked for: the engine was made to forget ({name})" for name in forgot
        )
        for trial in trials:
            promises = () if locks is None else tuple(sorted(locks.promises.kept - given_up))
            trial.log.run(
                Run(
                    result.scheme,
                    plan.seed,
                    ttl,
                    trial.discipline,
                    clients=plan.clients,
                    began=began_at,
                    promises=promises,
                    notes=notes,
                )
            )
            for fault, reason in result.faults_not_run.items():
                trial.log.fault(Fault(fault, "engine", note=f"not run: {reason}"))
            for one in left:
                if one.name == trial.name:
                    trial.log.left(one)
            trial.log.end()
    result.seconds = time.monotonic() - began
    watch(result.scheme, "is judged", "")
    for trial in trials:
        history = load(trial.folder)
        judgement = judge(history)
        if not judgement.counts["acknowledged"]:
            result.errors.append(f"no update was acknowledged under {trial.discipline}: the run shows nothing")
        result.trials.append((history, judgement))


def _teller(watch: Watch, result: Result) -> Callable[[str, str], None]:
    return lambda fault, target: watch(result.scheme, fault, target)
