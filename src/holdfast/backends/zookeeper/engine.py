"""`zookeeper://h1,h2,h3/chroot`, or a client of kazoo in its place.

One server is asked on opening for what the ensemble grants; then each coordinator has sessions of its own.
"""

from __future__ import annotations

import os
import socket
import ssl
from typing import cast

from ..._core.flow import RANDOM, Endpoint, Flow
from ...errors import Misconfigured
from ...ports import Backend, Opened
from ..client_engine import ClientEngine
from .address import Address, KazooClient, of_client, parse
from .backend import ZooKeeperBackend
from .client import ZooKeeperClient
from .connector import ServerRotation, ask_ensemble
from .ops import Answer, acl
from .requests import Batch
from .tree import Tree


class ZooKeeperEngine(ClientEngine[Batch, "list[Answer] | list[str] | None"]):
    def __init__(self, url: str | KazooClient, namespace: str, request_timeout: float) -> None:
        self._address = address = parse(url) if isinstance(url, str) else of_client(url)
        self.url = address.shown
        self._timeout = request_timeout
        tls = tls_context(address)
        self._endpoints = [Endpoint(host, port, tls=tls) for host, port in address.hosts]
        self._tree = Tree.of(address.chroot, namespace, acl("auth", "") if address.user else acl())

    def open(self) -> Flow[Opened[Batch, list[Answer] | list[str] | None]]:
        address, tree = self._address, self._tree
        chance: float = yield RANDOM
        servers = ServerRotation(self._endpoints, address.shown, int(chance * len(self._endpoints)))
        ensemble = yield from ask_ensemble(servers, address.credentials, tree, self._timeout)
        least, guarded = ensemble.least_session_s, bool(address.user)
        backend = ZooKeeperBackend(
            tree, ensemble.cluster, least / 2, self._timeout, socket.gethostname(), os.getpid, guarded
        )
        client = ZooKeeperClient(self._endpoints, address.shown, address.credentials, least, tree.root, tree.acl)
        return Opened(cast("Backend[Batch, list[Answer] | list[str] | None]", backend), client)


def tls_context(address: Address) -> ssl.SSLContext | None:
    if not address.tls:
        return None
    try:
        context = ssl.create_default_context(cafile=address.ca or None)
        if address.cert:
            context.load_cert_chain(address.cert, address.key or None)
    except OSError as error:
        raise Misconfigured(f"the certificates of the ZooKeeper URL cannot be used: {error}") from error
    if not address.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def open_engine(url: str | KazooClient, namespace: str, request_timeout: float) -> ZooKeeperEngine:
    return ZooKeeperEngine(url, namespace, request_timeout)
