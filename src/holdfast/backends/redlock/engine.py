"""`redlock://`: the flows of a quorum, and its client. Nothing is asked of a node before the first wire is made."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable

from ... import clock
from ..._core.flow import RANDOM, Flow
from ...model import Promises
from ...ports import Opened
from ..client_engine import ClientEngine
from .address import of_url
from .backend import RedlockBackend
from .client import RedlockClient
from .fanout import Fanout, Tally
from .handshake import Handshake
from .keys import Keys
from .quorum import Quorum
from .records import LISTENS_DIGITS_COUNT

NO_QUEUE = "each node of a quorum keeps a line of its own: they tell whose turn it is, and need not agree"
COUNTS = "majorities do not preserve counts: two sets of permits can each have one; use one Redis, or etcd"
PROMISES = Promises(
    frozenset({"fencing"}),
    {
        "linearizable": "who waits, and who sees what when, has no single order on a quorum; only the grants do",
        "durable": "a grant survives the crash of a minority of nodes, not that of more",
        "shared": COUNTS,
        "counting": COUNTS,
        "limits": COUNTS,
        "records": "a quorum of Redis servers agrees on holders, not on values; use redis://, etcd:// or a database",
        "predecessor": "there is no line, and nodes may differ about who held last; use redis:// or etcd://",
        "deadlock": "nodes are read one after the other, so no circle of waiters is seen for sure; use timeouts",
        "queue": NO_QUEUE,
        "order": NO_QUEUE,
    },
    lacks=frozenset({"limits", "deadlock", "queue", "order", "predecessor"}),
)


class RedlockEngine(ClientEngine[Fanout, Tally]):
    """N nodes."""

    def __init__(
        self, url: str, namespace: str, request_timeout: float, calendar_us: Callable[[], int] = clock.calendar_us
    ) -> None:
        self._address = address = of_url(url, request_timeout)
        self.url = address.url
        self._calendar_us = calendar_us
        who = " ".join([namespace, *sorted(address.places)])
        self._quorum = Quorum(
            address.places,
            namespace,
            hashlib.sha256(who.encode()).hexdigest()[:12],
            address.node_timeout,
            address.longest_ttl,
            request_timeout,
            address.found_after,
            socket.gethostname(),
            os.getpid,
        )
        self._keys, self._longest_us = Keys(namespace), int(address.longest_ttl * 1_000_000)

    def open(self) -> Flow[Opened[Fanout, Tally]]:
        chance: float = yield RANDOM
        listens = f"{int(chance * 16**LISTENS_DIGITS_COUNT):0{LISTENS_DIGITS_COUNT}x}"
        handshake = Handshake(self._keys.marks, self._longest_us, self._keys.channel(listens))
        client = RedlockClient(self._address.servers, self._address.places, handshake)
        try:
            yield from client.open()
        except BaseException:  # cancelled: nobody else would close what has been opened so far
            yield from client.close(0.0)
            raise
        return Opened(RedlockBackend(self._quorum, PROMISES, self._calendar_us, listens), client)


def open_engine(url: str, namespace: str, request_timeout: float) -> RedlockEngine:
    return RedlockEngine(url, namespace, request_timeout)
