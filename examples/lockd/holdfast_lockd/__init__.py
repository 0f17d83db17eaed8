"""`lockd://host:port`: locks kept by the server of this package. A complete engine of a third party."""

from __future__ import annotations

from urllib.parse import urlsplit

from holdfast.engine import ClientEngine, QueueBackend, QueueReply, QueueRequest
from holdfast.errors import Misconfigured
from holdfast.flow import NOW, Endpoint, Flow
from holdfast.model import Promises
from holdfast.ports import Opened

from .client import LockdClient

DEFAULT_PORT = 7777
LEAST_TTL_S = 0.01
PROMISES = Promises(
    frozenset({"fencing", "linearizable", "shared", "counting"}),
    {
        "durable": "lockd keeps its locks in memory, and forgets them when it ends",
        "predecessor": "its protocol tells tokens, and not how the last hold ended",
    },
    lacks=frozenset({"predecessor"}),
)


class LockdEngine(ClientEngine[QueueRequest, QueueReply]):
    """What the URL says. Each coordinator gets a client of its own from `open`."""

    def __init__(self, url: str, namespace: str, request_timeout: float) -> None:
        self.url = url
        self._endpoint = _endpoint(url)
        self._namespace = namespace
        self._timeout = request_timeout

    def open(self) -> Flow[Opened[QueueRequest, QueueReply]]:
        client = LockdClient(self._endpoint, self._namespace)
        now: float = yield NOW
        cluster = yield from client.hello(now + self._timeout)
        backend = QueueBackend("lockd", cluster, PROMISES, LEAST_TTL_S, self._timeout)
        return Opened(backend, client)


def _endpoint(url: str) -> Endpoint:
    """Never shows the URL: it may hold a password, even where none belongs."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError as error:
        raise Misconfigured(f"the port of a lockd:// URL is wrong: {error}") from None
    if not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment or parts.username is not None:
        raise Misconfigured("lockd is reached by lockd://host:port; it takes no path, user or options")
    return Endpoint(parts.hostname, DEFAULT_PORT if port is None else port)


open_engine = LockdEngine
