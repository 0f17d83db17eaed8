"""A run: worker processes on one engine, faults, and what became of the effects.

1. An effect is applied at most once per key: behind the fence, whatever happens.
2. What was acknowledged as the result of a key is its result for ever: nobody is told another one.
3. A key with a result has its effect.
4. The tokens of a key's effects grow.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..clients.process import wake
from ..engines import EngineOptions, TorturedEngine, start
from ..sandbox import Sandbox
from ..sandbox.sandbox import lines_of
from .ledger import EffectLedger
from .once_worker import WorkerConfig

END_TIMEOUT_S = 60.0
STOPS_RATIO, DIES_RATIO = 0.05, 0.02


@dataclass(slots=True)
class EffectsResult:
    """What happened, and what must not have happened."""

    engine: str
    fenced: bool
    seed: int
    seconds: float = 0.0
    told: Counter[str] = field(default_factory=Counter)
    """By what workers were told: completed, seen, refused, failed."""
    faults: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """What workers wrote to stderr: they should have nothing to say."""

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

    def end(self) -> None:
        self._ending.set()
        if self._process is not None:
            self._close(self._process)
        self._thread.join(END_TIMEOUT_S)
        if self._thread.is_alive():
            self._result.complaints.append(f"{self._config.worker} did not end")

    def _close(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        process.stdin.close()


def torture_once(scheme: str, seconds: float, seed: int, *, fenced: bool = True, workers: int = 4) -> EffectsResult:
    """Torture `once` on a throw-away engine for so many seconds. Raises `NotAvailable` if this machine has none."""
    module = "holdfast.torture.effects.once_worker"
    return torture_effects(module, lambda *given: judge(given[0], given[2]), scheme, seconds, seed, fenced, workers)


def torture_effects(
    module: str,
    verdict: Callable[[Path, str, EffectsResult], None],
    scheme: str,
    seconds: float,
    seed: int,
    fenced: bool,
    workers: int,
) -> EffectsResult:
    """Run a module in processes of its own, and judge what they have left in their folder and at the engine's URL."""
    result = EffectsResult(scheme, fenced, seed)
    chance = random.Random(seed)
    with Sandbox() as sandbox:
        engine = start(scheme, sandbox, EngineOptions(flushes=True))
        folder = sandbox.new_folder("effects")
        EffectLedger(folder / "ledger.db").close()  # made once: its workers would make it all at once
        ttl = max(engine.ttl, 0.5)
        config = WorkerConfig("", "", str(folder), ttl, seed, fenced, STOPS_RATIO, DIES_RATIO)
        began = time.monotonic()
        processes = [
            WorkerProcess(sandbox, module, replace(config, worker=name, url=engine.url(name)), result)
            for name in (f"w{number}" for number in range(1, workers + 1))
        ]
        while (left := began + seconds - time.monotonic()) > 0:
            time.sleep(min(left, chance.uniform(0.2, 0.6)))
            if left > 1.0:
                _inject(engine, chance, result)
        for process in processes:
            process.end()
        result.seconds = time.monotonic() - began
        verdict(folder, engine.url("w1"), result)
    return result


def _inject(engine: TorturedEngine, chance: random.Random, result: EffectsResult) -> None:
    """A fault below the workers: a lost reply, a broken connection, a server that is killed and started again."""
    if engine.network is None:
        return
    kind = chance.choices(("lost-reply", "reset", "restart"), (6, 3, 1))[0]
    if kind == "restart":
        node = chance.choice(engine.nodes)
        node.kill()
        node.start()
    elif kind == "reset":
        engine.network.reset("*")
    else:
        engine.network.lose("*")
    result.faults[kind] += 1


def judge(folder: Path, result: EffectsResult) -> None:
    """Compare what workers were told with what was applied."""
    results: dict[str, set[str]] = {}
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            try:
                told = json.loads(line)
            except ValueError:
                continue  # it was killed while it wrote
            result.told[told["what"]] += 1
            if told["what"] in ("completed", "seen"):
                results.setdefault(told["key"], set()).add(told["result"])
    ledger = EffectLedger(folder / "ledger.db")
    effects = ledger.effects()
    ledger.close()
    for key, tokens in effects.items():
        if len(tokens) > 1:
            result.violations.append(f"the effect of {key} was applied {len(tokens)} times, with the tokens {tokens}")
        if sorted(tokens) != tokens:
            result.violations.append(f"the tokens of {key} went back: {tokens}")
    for key, said in results.items():
        if len(said) > 1:
            result.violations.append(f"{key} had several results: {', '.join(sorted(said))}")
        if key not in effects:
            result.violations.append(f"{key} has a result, and no effect")
