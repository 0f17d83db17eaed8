"""The puppets of a play as the director sees them: real processes that do one thing at a time."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
from typing import Any

from ..arena import Site
from ..arena.loopback import eventually
from ..arena.site import lines_of
from ..clients.order import Order
from ..clients.process import is_stopped

ANSWER_TIMEOUT = 60.0


class Puppet:
    """One process, over all its lives. `pending` is a command that was not answered yet."""

    def __init__(self, site: Site, name: str) -> None:
        self.name = name
        self._site = site
        self._begin()

    def _begin(self) -> None:
        self._said: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[str] = self._site.spawn(
            [sys.executable, "-m", "holdfast.torture.clients.puppet"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._listen, args=(self._process, self._said), daemon=True).start()
        self.pending = False

    @staticmethod
    def _listen(process: subprocess.Popen[str], said: queue.SimpleQueue[dict[str, Any] | None]) -> None:
        for line in lines_of(process.stdout):
            said.put(json.loads(line))
        said.put(None)

    def play(self, order: Order) -> None:
        if self.pending or self._process.poll() is not None:
            self.kill()
            self._begin()
        self.tell(do="play", order=order.word())

    def tell(self, **command: Any) -> dict[str, Any]:
        """Have something done, and wait for the outcome."""
        self.cue(**command)
        return self.hear()

    def cue(self, **command: Any) -> None:
        assert self._process.stdin is not None
        assert not self.pending, f"{self.name} is busy"
        print(json.dumps(command), file=self._process.stdin, flush=True)
        self.pending = True

    def hear(self, queued: bool = False) -> dict[str, Any]:
        """The outcome; or, with `queued`, that it stands in line."""
        while True:
            try:
                answer = self._said.get(timeout=ANSWER_TIMEOUT)
            except queue.Empty:
                raise RuntimeError(f"{self.name} has not answered in {ANSWER_TIMEOUT:g} s") from None
            if answer is None:
                raise RuntimeError(f"{self.name} has ended; its own error is above")
            if "queued" not in answer:
                self.pending = False
                return answer
            if queued:
                return answer

    def stop(self) -> None:
        self._process.send_signal(signal.SIGSTOP)
        eventually(lambda: is_stopped(self._process.pid), 10.0, 0.001)

    def wake(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._site.end(self._process)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None
