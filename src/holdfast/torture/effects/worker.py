"""What every worker process has: its settings, chance, a file of what it was told, and strikes at itself.

1. A worker works until its stdin is closed, and connects again when the engine was not there.
2. What it was told (results, refusals) it writes to its own file, one JSON object a line, each as soon as it was told.
3. It strikes itself: only it knows its worst moments. It announces the fault on stdout, in one write, and stops or
   dies; whoever has started it resumes it when the time is over.
4. It stops by a signal to the thread that strikes: after one to the process, that thread may go on for a while.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from ... import Coordinator, connect
from ...errors import BackendUnavailable

SHORTEST_STOP_RATIO, LONGEST_STOP_RATIO = 1.5, 4.0
"""In ttls: another worker needs some of it to find out that this one is late, and to be done before it wakes up."""
RECONNECT_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What a worker is told."""

    worker: str
    url: str
    folder: str
    ttl: float
    seed: int
    fenced: bool
    stops: float
    """How likely it stops itself, at each of its worst moments, for longer than its ttl."""
    dies: float

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class WorkerContext:
    """One process of a run."""

    def __init__(self, config: WorkerConfig) -> None:
        self.config = config
        self.folder = Path(config.folder)
        self.name = f"{config.worker}-{os.getpid()}"
        self.chance = random.Random(f"{config.seed} {self.name}")
        self.ending = threading.Event()
        self._striking = threading.Lock()
        """One thread at a time: two stops at once would be one, and be ended twice."""
        self._told = (self.folder / f"{self.name}.jsonl").open("a", buffering=1)

    def run(self, work: Callable[[Coordinator], None]) -> None:
        """Work with a coordinator, and with another one after the engine was not there."""
        threading.Thread(target=self._listen, daemon=True).start()
        while not self.ending.is_set():
            try:
                with connect(self.config.url, request_timeout=2.0) as locks:
                    work(locks)
            except BackendUnavailable:
                self.ending.wait(RECONNECT_PAUSE_S)

    def tell(self, what: str, key: str, result: object = "", at: float | None = None) -> None:
        """Write down what this worker was told; `at` a moment that it is sure of."""
        line = {"what": what, "key": key, "result": result}
        self._told.write(json.dumps(line if at is None else line | {"at": at}) + "\n")

    def strike(self, moment: str, stops: float | None = None, before: Callable[[], None] | None = None) -> None:
        """Now and then: die, or stop for longer than the ttl. `before` it stops it does this."""
        config, number = self.config, self.chance.random()
        stops = config.stops if stops is None else stops
        if number >= config.dies + stops:
            return
        with self._striking:
            if number < config.dies:
                _announce({"fault": "die", "at": moment})
                os.kill(os.getpid(), signal.SIGKILL)
                threading.Event().wait()
            if before is not None:
                before()
            seconds = config.ttl * self.chance.uniform(SHORTEST_STOP_RATIO, LONGEST_STOP_RATIO)
            _announce({"fault": "stop", "at": moment, "seconds": seconds})
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    def _listen(self) -> None:
        sys.stdin.read()
        self.ending.set()


def _announce(fault: dict[str, object]) -> None:
    os.write(1, (json.dumps(fault) + "\n").encode())


def worker_context() -> WorkerContext:
    """Of this process, as it was told by its first argument."""
    logging.disable()  # refusals are what the run is about
    return WorkerContext(WorkerConfig(**json.loads(sys.argv[1])))
