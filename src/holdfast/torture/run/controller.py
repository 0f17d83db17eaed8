"""The controller of a run on one engine.

1. One engine with its faults, and a trial for each discipline in parallel: the same faults, another resource and name.
2. When the time is over, all faults are healed and the clients finish; then a survey, once every ttl has passed. Only
   then the histories are read and judged.
3. Whatever happens, the sandbox ends all that was started.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from ..checkers import judge
from ..clients.config import ClientConfig, timeouts
from ..clients.process import ClientProcess
from ..engines import TorturedEngine, start
from ..faults import FaultContext
from ..history import Discipline, FaultRecord, Run, now
from ..history_reader import load
from ..recorder import Log
from ..resource import FILE, Resource
from ..sandbox import NotAvailable, Sandbox
from . import leftovers
from .fault_schedule import FaultSchedule, chance_of
from .plan import Plan
from .result import RunResult

NAMESPACE = "torture"
ProgressCallback = Callable[[str, str, str], None]
"""Called with each event: the engine, the event, and its target."""


class Trial:
    """One discipline on the engine: its folder, its clients, its log."""

    def __init__(self, sandbox: Sandbox, discipline: Discipline, folder: Path) -> None:
        self.discipline = discipline
        self.folder = folder
        self.name = f"torture/{discipline}"
        self.log = Log(folder)
        self.clients: list[ClientProcess] = []
        self._sandbox = sandbox

    def begin(self, plan: Plan, url: Callable[[str], str], ttl: float, note: Callable[[FaultRecord], None]) -> None:
        Resource(self.folder / FILE, self.discipline).close()  # made once: its clients would make it all at once
        timeout, request_timeout = timeouts(ttl)
        for number in range(1, plan.clients + 1):
            client = f"{self.discipline[:2]}{number}"
            config = ClientConfig(
                client, url(client), str(self.folder), self.name, self.discipline, ttl,
                seed=plan.seed, namespace=NAMESPACE, timeout=timeout, request_timeout=request_timeout,
                think=plan.think or min(0.075 * ttl, 0.03), pause=(0.85 * ttl, 2.2 * ttl), aim={**plan.aimed()},
                body="threads" if number % 2 else "asyncio",
                cancels=0.05 if "cancel" in plan.names() else 0.0,
                blocks=0.02 if "block-loop" in plan.names() else 0.0,
                forks=0.05 if "fork" in plan.names() else 0.0,
            )  # fmt: skip
            self.clients.append(ClientProcess(self._sandbox, config, note))


def torture(
    scheme: str,
    plan: Plan,
    folder: Path,
    watch: ProgressCallback = lambda *what: None,
    url: str | None = None,
    ending: threading.Event | None = None,
) -> RunResult:
    """Run one engine of ours (or the user's server at `url`) and judge. `folder` keeps the histories.

    Set `ending` to end the run early; its history until then is judged.
    """
    result = RunResult(scheme, plan.seed)
    with Sandbox() as sandbox:
        watch(scheme, "starts", "")
        try:
            engine = None if url else start(scheme, sandbox, plan.engine_options())
        except NotAvailable as error:
            result.not_run = str(error)
            return result
        _run(result, plan, sandbox, engine, url or "", folder, watch, ending or threading.Event())
    return result


def _run(
    result: RunResult,
    plan: Plan,
    sandbox: Sandbox,
    engine: TorturedEngine | None,
    url: str,
    folder: Path,
    watch: ProgressCallback,
    wanted: threading.Event,
) -> None:
    ttl = plan.ttl or (engine.ttl if engine is not None else 1.0)
    began = time.monotonic()
    mutex = threading.Lock()

    def url_of(client: str) -> str:
        return url if engine is None else engine.url(client)

    with ExitStack() as stack:
        trials = [Trial(sandbox, discipline, folder / result.scheme / discipline) for discipline in plan.disciplines]
        for trial in trials:
            stack.enter_context(trial.log)

        def note(fault: FaultRecord) -> None:
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
        contexts = [
            (
                side,
                FaultContext(
                    engine, clients, chance_of(plan.seed, side), ending, note, ttl, begun=_teller(watch, result)
                ),
            )
            for side in ("client", "engine")
        ]
        watch(result.scheme, "runs", "")
        fault_schedule = FaultSchedule(plan, contexts, ending)
        try:
            wanted.wait(plan.seconds)
        finally:
            ending.set()
            watch(result.scheme, "ends", "")
            fault_schedule.over()
            for client in clients:
                client.close()
        result.put_off = fault_schedule.put_off
        result.errors += [f"the faults ended early: {type(error).__name__}: {error}" for error in fault_schedule.errors]
        for client in clients:
            if not client.ended():
                result.errors.append(f"client {client.name} did not end by itself")
            result.errors += client.failures
        left, locks = leftovers.find(url_of("controller"), NAMESPACE, [trial.name for trial in trials], ttl)
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
                trial.log.fault(FaultRecord(fault, "engine", note=f"not run: {reason}"))
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


def _teller(watch: ProgressCallback, result: RunResult) -> Callable[[str, str], None]:
    return lambda fault, target: watch(result.scheme, fault, target)
