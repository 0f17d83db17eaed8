"""A run: worker processes on one engine, faults, and what became of their effects.

A workload says which module its workers run, on which engines it can be, and what must not have happened. Its workers
strike themselves (`worker`); here the engine and its network are struck.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ... import connect
from ...errors import Misconfigured
from ..clients.process import wake
from ..engines import EngineOptions, TorturedEngine, start
from ..sandbox import Sandbox
from ..sandbox.sandbox import lines_of
from .worker import WorkerConfig

END_TIMEOUT_S = 60.0
SHORTEST_TTL_S = 0.5
FAULT_WEIGHTS = {"lost-reply": 10, "reset": 5, "restart": 1}
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.3, 1.0
"""Between two faults: what the workers do must come to an end now and then."""
EVERYBODY_RATIO = 0.2


@dataclass(slots=True)
class EffectsResult:
    """What happened, and what must not have happened."""

    engine: str
    fenced: bool
    seed: int
    seconds: float = 0.0
    told: Counter[str] = field(default_factory=Counter)
    """By what workers were told: completed, refused, failed and so on."""
    faults: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """What workers wrote to stderr: they should have nothing to say."""

    @property
    def operations(self) -> int:
        return sum(self.told.values())

    @property
    def passed(self) -> bool:
        return not self.violations and not self.complaints and self.told["completed"] > 0


class WorkerProcess:
    """One worker, over all its lives."""

    def __init__(self, sandbox: Sandbox, module: str, config: WorkerConfig, result: EffectsResult) -> None:
        self._sandbox, self._module, self._config, self._result = sandbox, module, config, result
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._process: subprocess.Popen[str] | None = None
        self._thread.start()

    def _live(self) -> None:
        while not self._ending.is_set():
            process: subprocess.Popen[str] = self._sandbox.spawn(
                [sys.executable, "-m", self._module, self._config.to_json()],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            self._process = process
            if self._ending.is_set():
                self._close(process)
            for line in lines_of(process.stdout):
                told = json.loads(line)
                self._result.faults[f"{told['fault']} {told['at']}"] += 1
                if told["fault"] == "stop":
                    self._ending.wait(told["seconds"])
                    wake(process)
            if said := "".join(lines_of(process.stderr)):
                self._result.complaints.append(said[-2000:])
            self._sandbox.end(process)

    def close(self) -> None:
        """Ask it to end, and end its stop."""
        self._ending.set()
        if self._process is not None:
            self._close(self._process)

    def join(self) -> None:
        """Wait for its end."""
        self._thread.join(END_TIMEOUT_S)
        if self._thread.is_alive():
            self._result.complaints.append(f"{self._config.worker} did not end")

    def _close(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        process.stdin.close()


@dataclass(frozen=True, slots=True)
class Workload:
    """What is tortured."""

    name: str
    module: str
    """Of its workers."""
    engines: tuple[str, ...]
    judge: Callable[[Path, str, EffectsResult], None]
    """Look at what workers have left in their folder and at the engine's URL; add violations to the result."""
    prepare: Callable[[Path, str], None] = lambda folder, url: None
    stops: float = 0.02
    """How likely a worker stops itself at one of its worst moments; it should be awake about half of the time."""
    dies: float = 0.007


def torture_effects(
    workload: Workload, scheme: str, seconds: float, seed: int, *, fenced: bool = True, workers: int = 4
) -> EffectsResult:
    """Torture a throw-away engine for so many seconds. Raises `NotAvailable` if this machine has none."""
    if scheme not in workload.engines:
        raise Misconfigured(
            f"{workload.name} cannot be tortured on {scheme}; use one of: {', '.join(workload.engines)}"
        )
    result = EffectsResult(scheme, fenced, seed)
    chance = random.Random(seed)
    with Sandbox() as sandbox:
        engine = start(scheme, sandbox, EngineOptions(flushes=True))
        folder = sandbox.new_folder("effects")
        with connect(engine.url("judge")) as locks, locks.lock("prepared"):
            pass  # tables are there before the first fault: PostgreSQL once did not survive a kill while it made them
        workload.prepare(folder, engine.url("judge"))
        ttl = max(engine.ttl, SHORTEST_TTL_S)
        config = WorkerConfig("", "", str(folder), ttl, seed, fenced, workload.stops, workload.dies)
        began = time.monotonic()
        processes = [
            WorkerProcess(sandbox, workload.module, replace(config, worker=name, url=engine.url(name)), result)
            for name in (f"w{number}" for number in range(1, workers + 1))
        ]
        while (left := began + seconds - time.monotonic()) > 0:
            time.sleep(min(left, chance.uniform(SHORTEST_PAUSE_S, LONGEST_PAUSE_S)))
            if left > 1.0:
                _inject(engine, chance, f"w{chance.randint(1, workers)}", result)
        for process in processes:
            process.close()
        for process in processes:
            process.join()
        result.seconds = time.monotonic() - began
        if engine.network is not None:
            engine.network.heal()
        workload.judge(folder, engine.url("judge"), result)
    return result


def _inject(engine: TorturedEngine, chance: random.Random, worker: str, result: EffectsResult) -> None:
    """A fault below the workers: a lost reply, a broken connection, a server that is killed and started again."""
    kind = chance.choices(list(FAULT_WEIGHTS), list(FAULT_WEIGHTS.values()))[0]
    links = "*" if chance.random() < EVERYBODY_RATIO else f"{worker}>*"
    if kind == "restart" and engine.nodes:
        node = chance.choice(engine.nodes)
        node.kill()
        node.start()
    elif kind == "reset" and engine.network is not None:
        engine.network.reset(links)
    elif kind == "lost-reply" and engine.network is not None:
        engine.network.lose(links)
    else:
        return  # this engine has none
    result.faults[kind] += 1


def read_told(folder: Path, result: EffectsResult) -> Iterator[tuple[str, dict[str, Any]]]:
    """What workers were told, each line with the name of its process; counted in the result."""
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            try:
                told = json.loads(line)
            except ValueError:
                continue  # it was killed while it wrote
            result.told[told["what"]] += 1
            yield file.stem, told


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether it has come true in that time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
