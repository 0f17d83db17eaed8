"""One process that makes attempts of a `once`, and strikes itself: it stops or dies at the worst moments.

It writes what it was told (results, refusals) to its own file, one JSON object a line, each as soon as it was told.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from ... import connect
from ...errors import AttemptInProgress, BackendUnavailable, FenceRejected
from .ledger import EffectLedger

KEYS_PER_SECOND_COUNT = 40
WINDOW_COUNT = 8
"""All workers are at the same few keys, and those move on with the time."""
OLDER_RATIO = 0.5


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


def strike(config: WorkerConfig, chance: random.Random, moment: str) -> None:
    """Now and then: die, or stop for longer than the ttl."""
    number = chance.random()
    if number < config.dies:
        _announce({"fault": "die", "at": moment})
        os.kill(os.getpid(), signal.SIGKILL)
    elif number < config.dies + config.stops:
        seconds = config.ttl * chance.uniform(1.2, 2.5)
        _announce({"fault": "stop", "at": moment, "seconds": seconds})
        os.kill(os.getpid(), signal.SIGSTOP)


def _announce(fault: dict[str, object]) -> None:
    """In one write: other threads announce theirs."""
    os.write(1, (json.dumps(fault) + "\n").encode())


class OnceWorker:
    """Attempts, one after the other, until stdin is closed."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._random = random.Random(f"{config.seed} {config.worker} {os.getpid()}")
        self._ledger = EffectLedger(Path(config.folder) / "ledger.db")
        self._log = (Path(config.folder) / f"{config.worker}-{os.getpid()}.jsonl").open("a", buffering=1)
        self._ending = threading.Event()

    def run(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        while not self._ending.is_set():
            try:
                self._work()
            except BackendUnavailable:  # while it connects: the engine is being started again
                self._ending.wait(0.1)

    def _work(self) -> None:
        config = self._config
        with connect(config.url, request_timeout=2.0) as locks:
            once = locks.once("payments", keep="1h", takeover="rerun", ttl=config.ttl, wait=4 * config.ttl)
            while not self._ending.is_set():
                key = self._key()
                try:
                    with once.attempt(key) as attempt:
                        if attempt.done:
                            self._tell("seen", key, attempt.result)
                            continue
                        self._strike("begun")
                        self._apply(key, attempt.token)
                        self._strike("applied")
                        result = f"{config.worker}:{attempt.token}"
                        attempt.complete(result)
                        self._tell("completed", key, result)
                except FenceRejected:
                    self._tell("refused", key, "")
                except (AttemptInProgress, BackendUnavailable) as error:
                    self._tell("failed", key, type(error).__name__)

    def _key(self) -> str:
        """One of the present ones, or one from some ttls ago: an attempt at it may be stopped, and by now be dead."""
        ago = self._random.uniform(0, 4 * self._config.ttl) if self._random.random() < OLDER_RATIO else 0.0
        return f"k{int((time.time() - ago) * KEYS_PER_SECOND_COUNT) + self._random.randrange(WINDOW_COUNT)}"

    def _apply(self, key: str, token: int) -> None:
        config = self._config
        if config.fenced:
            self._ledger.apply(key, token, config.worker)
        else:
            self._ledger.apply_unfenced(key, token, config.worker, lambda: self._strike("looked"))

    def _strike(self, moment: str) -> None:
        """The worst moments: between the claim and the effect, and between the effect and its result."""
        strike(self._config, self._random, moment)

    def _tell(self, what: str, key: str, result: str) -> None:
        self._log.write(json.dumps({"what": what, "key": key, "result": result}) + "\n")

    def _listen(self) -> None:
        sys.stdin.read()
        self._ending.set()


if __name__ == "__main__":
    logging.disable()  # refusals are what the run is about
    OnceWorker(WorkerConfig(**json.loads(sys.argv[1]))).run()
