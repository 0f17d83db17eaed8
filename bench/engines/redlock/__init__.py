"""Five independent Redis servers, on free loopback ports, without a disk. Its peers are the Redlocks of others.

All five and the client share a core for the pair: what is compared is work, and not which core was idle.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import verdicts
from bench.engines.redlock.pinned_peers import PINNED
from bench.limits import OURS, Finding, Limit
from bench.model import Engine, Layout, Target
from bench.outcomes import Report
from bench.progress import say
from tests.support.aside import aside
from tests.support.redis_server import free_ports, plain

NODE_COUNT = 5


@contextmanager
def start(folder: Path) -> Iterator[Target]:
    with ExitStack() as stack:
        for package, pinned in PINNED.items():
            try:
                aside(package, *pinned)
            except ImportError as error:
                say(f"{package}: {error}")  # it will be missing in the report, which says why
        ports = free_ports(NODE_COUNT)
        for number, port in enumerate(ports):
            server = plain(folder / f"node{number}", port)
            server.start()
            stack.callback(server.stop)
        yield Target(url="redlock://" + ",".join(f"127.0.0.1:{port}" for port in ports), folder=folder)


def ports_of(target: Target) -> list[int]:
    return [int(place.rpartition(":")[2]) for place in target.url.removeprefix("redlock://").split(",")]


def connect(port: int) -> socket.socket:
    link = socket.create_connection(("127.0.0.1", port))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


def commands(target: Target) -> int:
    """Calls of programs and of SET at all nodes."""
    total = 0
    for port in ports_of(target):
        with connect(port) as link:
            link.sendall(b"INFO commandstats\r\n")
            text = b""
            while b"\r\n" not in text or len(text) < int(text[1 : text.index(b"\r\n")]):
                text += link.recv(1 << 16)
        for line in text.decode().split("\r\n"):
            if line.startswith("cmdstat_evalsha:calls="):
                total += int(line.removeprefix("cmdstat_evalsha:calls=").partition(",")[0])
    return total


def _fastest_peer(report: Report) -> Finding | None:
    ours = next((each.p50 for each in report.pair if each.contender == OURS), None)
    peers = [(each.p50, each.contender) for each in report.pair if each.role == "peer"]
    if ours is None or not peers:
        return None
    fastest, name = min(peers)
    return Finding(f"≥ 1.8: {fastest / ours:.2f} ({name})", fastest / ours >= 1.8)


ENGINE = Engine(
    name="redlock",
    start=start,
    best_peers=("redlock-ng",),
    layouts=(Layout(1, 8), Layout(8, 1)),
    commands=commands,
    shares_core=True,
    limits=(verdicts.pair_at_most(1.4), Limit("the fastest peer, × holdfast", _fastest_peer)),
)
