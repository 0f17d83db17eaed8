"""The network of a sandbox, as the controller sees it: links named `client>node`, and commands to the forwarder.

A command returns when it is in force, so that the next step can rely on it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from ..sandbox.sandbox import Sandbox


class ProxyNetwork:
    """All links of one sandbox. Patterns choose some: `A>*` is all of a client's, `*>redis-2` all to a node."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._process: subprocess.Popen[str] = sandbox.spawn(
            [sys.executable, "-m", "holdfast.torture.proxy.forwarder"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._mutex = threading.Lock()
        self._number = 0
        self._ports: dict[str, int] = {}

    def open(self, client: str, node: str, host: str, port: int, at: str = "127.0.0.1") -> int:
        """A port on which this client reaches this node."""
        name = f"{client}>{node}"
        if name not in self._ports:
            [self._ports[name]] = self._command([name], host=host, target=port, at=at)
        return self._ports[name]

    def names(self, pattern: str = "*") -> list[str]:
        return [name for name in self._ports if fnmatchcase(name, pattern)]

    def hold(self, pattern: str) -> None:
        """A partition: nothing passes, and nothing is lost."""
        self._command(self.names(pattern), held=True)

    def mute(self, pattern: str) -> None:
        """Requests pass, replies do not."""
        self._command(self.names(pattern), mute=True)

    def delay(self, pattern: str, seconds: float) -> None:
        self._command(self.names(pattern), delay=seconds)

    def lose(self, pattern: str, replies: int = 1) -> None:
        """The next replies on each link are lost, each with its connection."""
        self._command(self.names(pattern), lose=replies)

    def reset(self, pattern: str) -> None:
        """Every connection ends by RST; new ones are welcome."""
        self._command(self.names(pattern), reset=True)

    def lead(self, pattern: str, port: int) -> None:
        """From now on these links lead to another server; the connections to the old one end."""
        self._command(self.names(pattern), target=port, reset=True)

    def heal(self, pattern: str = "*") -> None:
        self._command(self.names(pattern), held=False, mute=False, delay=0.0, lose=0)

    def _command(self, links: Iterable[str], **what: Any) -> list[int]:
        """The ports of links that were opened by it: the system chooses them when it binds them, so nobody has them."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._mutex:
            self._number += 1
            print(
                json.dumps({"number": self._number, "links": list(links), **what}), file=self._process.stdin, flush=True
            )
            answer = self._process.stdout.readline()
            if not answer:
                raise RuntimeError("the forwarder has ended; its own error is above")
            told = json.loads(answer)
            assert told["done"] == self._number
            return list(told["ports"])
