"""The clients of a scenario as the runner sees them: processes that execute one command at a time."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
from typing import Any

from ..clients.config import ClientConfig
from ..clients.process import is_stopped
from ..sandbox import Sandbox
from ..sandbox.loopback import eventually
from ..sandbox.sandbox import lines_of

ANSWER_TIMEOUT_S = 60.0


class ClientHandle:
    """One client process, over all its restarts. `pending`: a command was not answered yet."""

    def __init__(self, sandbox: Sandbox, name: str) -> None:
        self.name = name
        self._sandbox = sandbox
        self._begin()

    def _begin(self) -> None:
        self._said: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[str] = self._sandbox.spawn(
            [sys.executable, "-m", "holdfast.torture.clients.scripted_client"],
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

    def begin(self, config: ClientConfig) -> None:
        if self.pending or self._process.poll() is not None:
            self.kill()
            self._begin()
        self.call(do="begin", config=config.to_json())

    def call(self, **command: Any) -> dict[str, Any]:
        """Send a command, and wait for its answer."""
        self.send(**command)
        return self.receive()

    def send(self, **command: Any) -> None:
        assert self._process.stdin is not None
        assert not self.pending, f"{self.name} is busy"
        print(json.dumps(command), file=self._process.stdin, flush=True)
        self.pending = True

    def receive(self, queued: bool = False) -> dict[str, Any]:
        """The answer to the pending command; with `queued` also the answer that it waits in line."""
        while True:
            try:
                answer = self._said.get(timeout=ANSWER_TIMEOUT_S)
            except queue.Empty:
                raise RuntimeError(f"{self.name} has not answered in {ANSWER_TIMEOUT_S:g} s") from None
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
        self._sandbox.end(self._process)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None
