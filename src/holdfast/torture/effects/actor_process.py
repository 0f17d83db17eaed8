"""One process that tells actors and handles their messages, and strikes itself: it stops or dies at the worst moments.

It writes which messages were told to its own file, each as soon as it is. The effect of a message is its id in the
actor's state, with the token of the worker that has put it there.
"""

from __future__ import annotations

import json
import logging
import os
import random
import sys
import threading
from pathlib import Path

from ... import Actor, connect
from ...errors import BackendUnavailable
from .once_worker import WorkerConfig, strike

KEYS_COUNT = 6
NAME = "lists"


def put_effect(actor: Actor, message: str) -> None:
    """The effect of a message on the state."""
    actor.state = [*(actor.state or []), [message, actor.lease.token]]


class ActorProcess:
    """Tells and handles, until stdin is closed."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._random = random.Random(f"{config.seed} {config.worker} {os.getpid()}")
        self._log = (Path(config.folder) / f"{config.worker}-{os.getpid()}.jsonl").open("a", buffering=1)
        self._ending = threading.Event()
        self._told = 0

    def run(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        while not self._ending.is_set():
            try:
                self._work()
            except BackendUnavailable:  # the engine is being started again
                self._ending.wait(0.1)

    def _work(self) -> None:
        config = self._config
        with connect(config.url, request_timeout=2.0) as locks:
            lists = locks.actors(NAME, self._handle, ttl=config.ttl, tries=1000, backoff=0.01, concurrency=3)
            with lists:
                while not self._ending.is_set():
                    key = f"k{self._random.randrange(KEYS_COUNT)}"
                    self._told += 1
                    message_id = f"{config.worker}-{os.getpid()}-{self._told:06}"
                    try:
                        lists.tell(key, message_id, message_id=message_id, timeout=config.ttl)
                        self._tell("told", key, message_id)
                    except (TimeoutError, BackendUnavailable) as error:
                        self._tell("failed", key, type(error).__name__)
                    self._ending.wait(self._random.random() * 0.02)

    def _handle(self, actor: Actor, message: str) -> None:
        strike(self._config, self._random, "begun")
        put_effect(actor, message)
        strike(self._config, self._random, "handled")
        self._tell("completed", actor.key, message)

    def _tell(self, what: str, key: str, result: object) -> None:
        self._log.write(json.dumps({"what": what, "key": key, "result": result}) + "\n")

    def _listen(self) -> None:
        sys.stdin.read()
        self._ending.set()


def main() -> None:
    """As it was told by its first argument."""
    logging.disable()  # refusals are what the run is about
    ActorProcess(WorkerConfig(**json.loads(sys.argv[1]))).run()


if __name__ == "__main__":
    main()
