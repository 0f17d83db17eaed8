"""Quorums of real servers for tests, and what can be seen of them from outside."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.redis_server import RedisServer, free_ports, plain

WITHIN = 10.0


@dataclass
class Servers:
    """Some independent servers."""

    nodes: list[RedisServer]

    def url(self, **options: object) -> str:
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return "redlock://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes) + (f"?{query}" if query else "")

    def holders(self, name: str, namespace: str = "holdfast") -> list[str | None]:
        """The owner of a name at each node, None where it is free."""
        return [_owner(node.raw("GET", f"{namespace}/hold/{name}")) for node in self.nodes]

    def memories(self, namespace: str = "holdfast") -> str:
        """For each node: + it remembers, S or F it does not, - nothing was ever said."""
        texts = [node.raw("GET", f"{namespace}/marks/memory") for node in self.nodes]
        return "".join("-" if text.startswith(b"$-1") else text.split(b"\r\n")[1][:1].decode() for text in texts)

    def resume(self) -> None:
        for node in self.nodes:
            if node.process is not None:
                node.resume()


def _owner(reply: bytes) -> str | None:
    if reply.startswith(b"$-1"):
        return None
    return reply.split(b"\r\n")[1][30:].split(b" ")[0].decode()


@contextmanager
def quorum(count: int = 5, **settings: str) -> Iterator[Servers]:
    with tempfile.TemporaryDirectory(prefix="hf-redlock-") as folder:
        nodes = [plain(Path(folder) / str(i), port, **settings) for i, port in enumerate(free_ports(count))]
        try:
            for node in nodes:
                node.start()
            yield Servers(nodes)
        finally:
            for node in nodes:
                node.stop()


def eventually(condition: Callable[[], bool], what: str, within: float = WITHIN) -> None:
    """Wait until something can be seen from outside."""
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, f"not within {within:g} s: {what}"
        time.sleep(0.005)
