"""`etcd://` and `etcds://`: see `wires.address` for the URL.

The cluster is asked for its id by each new wire, which is what a coordinator is connected by: in the loop, for asyncio,
and within one request timeout for all members together. One that hangs keeps nobody from connecting to the others.
"""

from __future__ import annotations

import os
import socket
from typing import Any

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

WHO = (Rpc("/v3/maintenance/status", "{}"),)

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
        self.backend = EtcdBackend(here, "", PROMISES, LEAST_TTL)
        self._share = request_timeout / len(self._address.endpoints)

    def wire(self) -> Wire:
        wire = EtcdWire(self._address, self.backend.watch_of, self.backend.farewell, self.backend.forget)
        try:
            for others in reversed(range(len(self._address.endpoints))):
                try:
                    self.backend.cluster = _cluster(wire.call(WHO, self._share))
                    break
                except OutcomeUnknown:
                    if not others:
                        raise
        except BaseException:
            wire.close()
            raise
        return wire

    async def async_wire(self) -> AsyncWire:
        from .wires.aio import AsyncEtcdWire

        wire = AsyncEtcdWire(self._address, self.backend.watch_of, self.backend.farewell, self.backend.forget)
        try:
            for others in reversed(range(len(self._address.endpoints))):
                try:
                    self.backend.cluster = _cluster(await wire.call(WHO, self._share))
                    break
                except OutcomeUnknown:
                    if not others:
                        raise
        except BaseException:
            await wire.close()
            raise
        return wire


def _cluster(replies: Any) -> str:
    [status] = replies
    return f"{int(status['header']['cluster_id']):x}"


def open_engine(url: str, namespace: str, request_timeout: float) -> EtcdEngine:
    return EtcdEngine(url, namespace, request_timeout)
