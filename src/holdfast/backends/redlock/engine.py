"""`redlock://[user:password@]h1:p1,h2:p2,h3:p3[/db]?options`: N independent primaries, used as a quorum.

Options of ours, in seconds: `node_timeout` (how long a node is waited for, 0.25), `longest_ttl` (60) and `found_after`
(0: how long nodes that all remember nothing wait until they are taken for new ones); for the last two see `mending`.
All others are those of redis://, the same for all nodes; `ssl=true` for TLS.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from ... import clock
from ...errors import Misconfigured
from ...model import Promises
from ...ports import AsyncWire, Wire
from ..redis.address import of_url
from ..redis.server import Server
from .backend import RedlockBackend
from .fanout import Fanout, Tally
from .keys import Keys
from .quorum import Quorum
from .wires.greeting import Manners
from .wires.node.dialling import Dialler

NODE_TIMEOUT = 0.25
LONGEST_TTL = 60.0
NO_QUEUE = "there is no line on a quorum: whoever asks at the right moment is next, and nobody's turn is kept"
COUNTS = "majorities do not preserve counts: two sets of permits can each have one; use one Redis, or etcd"
PROMISES = Promises(
    frozenset({"fencing"}),
    {
        "linearizable": "who waits, and who sees what when, has no single order on a quorum; only the grants do",
        "durable": "a grant survives the crash of a minority of nodes, not that of more",
        "shared": COUNTS,
        "counting": COUNTS,
        "limits": COUNTS,
        "deadlock": "nodes are read one after the other, so no circle of waiters is seen for sure; use timeouts",
        "queue": NO_QUEUE,
        "order": NO_QUEUE,
    },
    lacks=frozenset({"limits", "deadlock", "queue", "order"}),
)


class RedlockEngine:
    """N nodes. Nothing is opened before the first wire."""

    def __init__(
        self, url: str, namespace: str, request_timeout: float, calendar_us: Callable[[], int] = clock.calendar_us
    ) -> None:
        self.url, urls, times = parse(url)
        addresses = [of_url(each, request_timeout) for each in urls]
        self._diallers: tuple[Dialler, ...] = tuple(
            Dialler(address.primary) for address in addresses if isinstance(address.primary, Server)
        )
        self._places = tuple(address.url.removeprefix("redis://") for address in addresses)
        if len(set(self._places)) < len(self._places):
            raise Misconfigured(f"{self.url} names a node twice; it would have two votes: name each once")
        who = " ".join([namespace, *sorted(self._places)])
        self._quorum = Quorum(
            self._places,
            namespace,
            hashlib.sha256(who.encode()).hexdigest()[:12],
            times.node_timeout,
            times.longest_ttl,
            request_timeout,
            times.found_after,
            socket.gethostname(),
            os.getpid,
        )
        self._manners = Manners(Keys(namespace).marks, int(times.longest_ttl * 1_000_000))
        self.backend = RedlockBackend(self._quorum, PROMISES, calendar_us)

    def wire(self) -> Wire[Fanout, Tally]:
        from .wires.wire import RedlockWire

        return RedlockWire(self._diallers, self._places, self._manners)

    async def async_wire(self) -> AsyncWire[Fanout, Tally]:
        from .wires.aio import AsyncRedlockWire

        wire = AsyncRedlockWire(self._diallers, self._places, self._manners)
        try:
            await wire.dial()
        except BaseException:  # cancelled: nobody else would close what has been opened so far
            await wire.close()
            raise
        return wire


class Times(NamedTuple):
    """Our options, in seconds."""

    node_timeout: float
    longest_ttl: float
    found_after: float


def parse(url: str) -> tuple[str, list[str], Times]:
    """The URL without secrets, that of each node, and our options."""
    body, _, query = url.removeprefix("redlock://").partition("?")
    userinfo, at, place = body.rpartition("@")
    hosts, _, db = place.partition("/")
    shown = f"redlock://{place}"
    options = dict(parse_qsl(query, keep_blank_values=True))
    times = Times(
        _seconds(shown, "node_timeout", options.pop("node_timeout", ""), NODE_TIMEOUT),
        _seconds(shown, "longest_ttl", options.pop("longest_ttl", ""), LONGEST_TTL),
        _seconds(shown, "found_after", options.pop("found_after", ""), 0.0),
    )
    nodes = hosts.split(",")
    if len(nodes) < 3 or not all(nodes):
        raise Misconfigured(f"{shown} needs at least 3 nodes (an odd number), as in redlock://host1:6379,host2,host3")
    for option in ("wait_replicas", "wait_aof", "wait_timeout"):
        if option in options:
            raise Misconfigured(f"{shown}: {option} is for one primary with replicas; the nodes of a quorum have none")
    rest = f"?{urlencode(options)}" if options else ""
    return shown, [f"redis://{userinfo}{at}{node}/{db}{rest}" for node in nodes], times


def _seconds(shown: str, name: str, text: str, default: float) -> float:
    try:
        value = float(text or default)
    except ValueError:
        value = 0.0
    if text and not 0.001 <= value <= 86400.0:
        raise Misconfigured(f"{shown}: {name}={text!r} is not a number of seconds from 0.001 to a day")
    return value


def open_engine(url: str, namespace: str, request_timeout: float) -> RedlockEngine:
    return RedlockEngine(url, namespace, request_timeout)
