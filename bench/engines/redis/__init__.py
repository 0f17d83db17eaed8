"""One Redis server, on a free loopback port, without a disk. Its peers are locks on one Redis.

Commands are counted by the server itself (`INFO commandstats`): what a program calls inside is not a command of the
client, and waiting in BLPOP is one.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import verdicts
from bench.growth_limits import cancel_at_most
from bench.limits import Finding, Limit
from bench.model import Engine, Layout, Target
from bench.outcomes import HandoffResult, PairResult, Report
from tests.support.redis_server import free_ports, plain

COUNTED = frozenset({"evalsha", "eval", "set", "blpop", "lpush", "rpush", "publish", "subscribe", "unsubscribe"})
"""What clients send here; `get` and `del` inside a program are counted by the server too, and are not theirs."""


@contextmanager
def start(folder: Path) -> Iterator[Target]:
    server = plain(folder / "redis", free_ports(1)[0])
    server.start()
    try:
        yield Target(url=server.url, folder=folder)
    finally:
        server.stop()


def connect(target: Target) -> socket.socket:
    host, _, port = target.url.removeprefix("redis://").partition(":")
    link = socket.create_connection((host, int(port)))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


def command(*words: object) -> bytes:
    """A command as it goes over the wire."""
    encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded)


def commands(target: Target) -> int:
    """Commands processed for clients so far. Those that programs call are not among them."""
    with connect(target) as link:
        link.sendall(command("INFO", "commandstats"))
        text = b""
        while b"\r\n" not in text or len(text) < int(text[1 : text.index(b"\r\n")]):
            text += link.recv(1 << 16)
    calls = {}
    for line in text.decode().split("\r\n"):
        if line.startswith("cmdstat_"):
            name, _, rest = line.removeprefix("cmdstat_").partition(":calls=")
            calls[name] = int(rest.partition(",")[0])
    inside = {"set", "publish"} if calls.get("evalsha") else set()
    return sum(count for name, count in calls.items() if name in COUNTED - inside)


def _pair(report: Report, name: str) -> PairResult | None:
    return next((each for each in report.pair if each.contender == name), None)


def _pair_ratio(title: str, over: str, under: str, fits: Callable[[float], bool], limit: str) -> Limit:
    def find(report: Report) -> Finding | None:
        one, other = _pair(report, over), _pair(report, under)
        if one is None or other is None:
            return None
        ratio = one.p50 / other.p50
        return Finding(f"{limit}: {ratio:.2f}", fits(ratio))

    return Limit(title, find)


def _handoff(title: str, layout: Layout, judge: Callable[[HandoffResult, HandoffResult], Finding]) -> Limit:
    def find(report: Report) -> Finding | None:
        there = [each for each in report.handoff if each.layout == str(layout) and each.hold == 0.005]
        ours = next((each for each in there if each.contender == "holdfast"), None)
        floor = next((each for each in there if each.role == "floor"), None)
        return judge(ours, floor) if ours and floor else None

    return Limit(f"{title}, {layout}, hold 5 ms", find)


def _gap(ours: HandoffResult, floor: HandoffResult) -> Finding:
    ratio = ours.handed_p50 / floor.handed_p50
    return Finding(f"≤ 2.0: {ratio:.2f}", ratio <= 2.0)


def _commands(ours: HandoffResult, floor: HandoffResult) -> Finding:
    found = ours.commands or 0.0
    return Finding(f"≤ 3: {found:.2f}", found <= 3)


def _held(ours: HandoffResult, floor: HandoffResult) -> Finding:
    return Finding(f"≥ 95 %: {ours.held * 100:.1f} %", ours.held >= 0.95)


LAYOUTS = (Layout(1, 8), Layout(1, 64), Layout(8, 1))
ENGINE = Engine(
    name="redis",
    start=start,
    best_peers=("redis-py", "redis-py asyncio", "python-redis-lock"),
    layouts=LAYOUTS,
    commands=commands,
    shares_core=True,
    own=("server_time", "tasks", "lossy_proxy", "neighbours"),
    limits=(
        verdicts.pair_at_most(1.5),
        cancel_at_most(1.0),
        _pair_ratio(
            "redis-py Lock with hiredis, × holdfast", "redis-py", "holdfast", lambda ratio: ratio >= 2.3, "≥ 2.3"
        ),
        _pair_ratio(
            "asyncio, one task, × a raw asyncio pair",
            "holdfast asyncio",
            "bare asyncio",
            lambda ratio: ratio <= 1.5,
            "≤ 1.5",
        ),
        _pair_ratio(
            "asyncio, 100 tasks: pairs/s, × redis-py's",
            "redis-py asyncio ×100",
            "holdfast asyncio ×100",
            lambda ratio: ratio >= 8,
            "≥ 8",
        ),
        *(
            _handoff(title, layout, judge)
            for layout in LAYOUTS
            for title, judge in (
                ("hand-off gap p50, × BLPOP", _gap),
                ("commands for each acquisition", _commands),
                ("share of the time in which somebody holds", _held),
            )
        ),
    ),
)
