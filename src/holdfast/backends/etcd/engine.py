"""`etcd://` and `etcds://`: see `address` for the URL.

The cluster is asked for its id when an engine is opened, within one request timeout for all members together: one that
hangs keeps nobody from connecting to the others.
"""

from __future__ import annotations

import os
import socket
import ssl
from typing import cast

from ... import clock
from ..._core.flow import NOW, Endpoint, Flow
from ...errors import BackendUnavailable, Misconfigured, OutcomeUnknown
from ...model import Promises
from ...ports import Backend, Opened
from ..client_engine import ClientEngine
from .address import ClusterAddress, parse
from .backend import EtcdBackend
from .client import EtcdClient
from .client_identity import ClientIdentity
from .connector import Connector
from .rpc import Rejected, Replies, Request, Rpc

LEAST_TTL_S = 0.2
"""What a holder can keep: it renews three times in that. etcd itself counts whole seconds, and holds no lease for less
than one and a half election timeouts (2 s by default): a holder that died is gone that much later."""

STATUS = (Rpc("/v3/maintenance/status", "{}"),)

PROMISES = Promises(
    frozenset({"fencing", "linearizable", "durable", "shared", "counting", "records"}),
    {
        "ttl": "rounded up to whole seconds, and to etcd's least (2 s with its default election timeout)",
        "limits": "by the callers' calendars: etcd has no clock; keep them together (NTP)",
        "predecessor": "of a mutex that was evicted, or taken with recover=, or with a lease of its own (renew=False, "
        "max_hold, lock_delay); of other holds that did not end cleanly nothing is remembered",
    },
)


class EtcdEngine(ClientEngine[Request, "Replies | str | None"]):
    """A cluster."""

    def __init__(self, url: str, namespace: str, request_timeout: float) -> None:
        self._address = address = parse(url)
        self.url = address.url
        tls = tls_context(address)
        name = address.options.get("name", "")
        self._endpoints = [Endpoint(host, port, tls=tls, server_name=name) for host, port in address.hosts]
        self._identity = ClientIdentity(namespace, socket.gethostname(), os.getpid, clock.calendar_us, request_timeout)

    def open(self) -> Flow[Opened[Request, Replies | str | None]]:
        return open_cluster(self._address, self._endpoints, self._identity)


def open_cluster(
    address: ClusterAddress, endpoints: list[Endpoint], identity: ClientIdentity
) -> Flow[Opened[Request, Replies | str | None]]:
    """A backend and a client for one coordinator."""
    backend = EtcdBackend(identity, "", PROMISES, LEAST_TTL_S)
    connector = Connector(endpoints, address.url)
    client = EtcdClient(connector, address.user, address.password, identity.request_timeout, backend)
    try:
        for others in reversed(range(len(endpoints))):
            now: float = yield NOW
            try:
                replies = yield from client.call(STATUS, now + identity.request_timeout / len(endpoints))
                break
            except BackendUnavailable as error:
                if not others:
                    raise _unanswered(error, address) from error
    except BaseException:
        client.end()
        raise
    assert replies is not None
    [status] = replies
    if isinstance(status, Rejected):
        client.end()
        raise BackendUnavailable(f"etcd did not say which cluster it is: {status.message}")
    backend.cluster = f"{int(status['header']['cluster_id']):x}"
    return Opened(cast("Backend[Request, Replies | str | None]", backend), client)


def _unanswered(error: BackendUnavailable, address: ClusterAddress) -> BackendUnavailable:
    """Nothing was at stake yet; and who speaks with the wrong port hears no more than that it was closed."""
    if not isinstance(error, OutcomeUnknown):
        return error
    tls = "a client certificate (cert=)" if address.tls else "TLS (etcds://)"
    return BackendUnavailable(f"{error}; see that it is a client port of etcd, and whether it wants {tls}")


def tls_context(address: ClusterAddress) -> ssl.SSLContext | None:
    if not address.tls:
        return None
    options = address.options
    files = [options["ca"]] if options.get("ca") else []
    try:
        context = ssl.create_default_context(cafile=options.get("ca") or None)
        if "cert" in options:
            files = [options[each] for each in ("cert", "key") if options.get(each)]
            context.load_cert_chain(options["cert"], options.get("key") or None)
    except (OSError, ssl.SSLError) as error:
        raise Misconfigured(
            f"{address.url}: the certificates cannot be read from {' and '.join(files)}: {error}"
        ) from error
    return context


def open_engine(url: str, namespace: str, request_timeout: float) -> EtcdEngine:
    return EtcdEngine(url, namespace, request_timeout)
