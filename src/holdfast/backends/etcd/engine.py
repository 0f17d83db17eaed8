"""`etcd://` and `etcds://`: see `wires.address` for the URL. The cluster is asked for its id once, on opening."""

from __future__ import annotations

import os
import socket

from ... import clock
from ...errors import OutcomeUnknown
from ...model import Promises
from ...ports import AsyncWire, Wire
from .backend import EtcdBackend
from .granting import Here
from .rpc import Rpc
from .wires.address import of_url
from .wires.wire import EtcdWire

LEAST_TTL = 0.2
"""What a holder can keep: it renews three times in that. etcd itself counts whole seconds, and holds no lease for less
than one and a half election timeouts (2 s by default): a holder that died is gone that much later."""

PROMISES = Promises(
    frozenset({"fencing", "linearizable", "durable", "shared", "counting"}),
    {
        "ttl": "rounded up to whole seconds, and to etcd's least (2 s with its default election timeout)",
        "limits": "by the callers' calendars: etcd has no clock; keep them together (NTP)",
    },
)


class EtcdEngine:
    """A cluster."""

    def __init__(self, url: str, namespace: str, request_timeout: float) -> None:
        self._address = of_url(url)
        self.url = self._address.url
        here = Here(namespace, socket.gethostname(), os.getpid, clock.calendar_us, request_timeout)
        self.backend = EtcdBackend(here, self._cluster(request_timeout), PROMISES, LEAST_TTL)

    def _cluster(self, timeout: float) -> str:
        """Of whichever member answers: one that hangs keeps nobody from connecting to the others."""
        wire = EtcdWire(self._address, lambda _: None, list, lambda: None)
        try:
            for others in reversed(range(len(self._address.endpoints))):
                try:
                    [status] = wire.call((Rpc("/v3/maintenance/status", "{}"),), timeout)
                    return f"{int(status['header']['cluster_id']):x}"
                except OutcomeUnknown:
                    if not others:
                        raise
        finally:
            wire.close()
        raise AssertionError("an address has an endpoint")

    def wire(self) -> Wire:
        return EtcdWire(self._address, self.backend.watch_of, self.backend.farewell, self.backend.forget)

    async def async_wire(self) -> AsyncWire:
        from .wires.aio import AsyncEtcdWire

        return AsyncEtcdWire(self._address, self.backend.watch_of, self.backend.farewell, self.backend.forget)


def open_engine(url: str, namespace: str, request_timeout: float) -> EtcdEngine:
    return EtcdEngine(url, namespace, request_timeout)
