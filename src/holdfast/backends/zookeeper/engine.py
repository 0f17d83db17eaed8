"""`zookeeper://h1,h2,h3/chroot`, or a client of kazoo in its place.

The ensemble is greeted once, to learn what it grants; each wire has sessions of its own.
"""

from __future__ import annotations

import os
import socket

from ...ports import AsyncWire, Wire
from .address import of_client, parse
from .backend import ZooKeeperBackend
from .ops import acl
from .tree import Tree
from .wires.greeting import greet


class ZooKeeperEngine:
    def __init__(self, url: object, namespace: str, request_timeout: float) -> None:
        self._address = parse(url) if isinstance(url, str) else of_client(url)
        self.url = self._address.shown
        self._timeout = request_timeout
        mine = acl("auth", "") if self._address.user else acl()
        self._tree = Tree.of(self._address.chroot, namespace, mine)
        greeting = greet(self._address, self._tree, request_timeout)
        self._least = greeting.least
        host = socket.gethostname()
        self.backend = ZooKeeperBackend(
            self._tree, greeting.cluster, greeting.least / 2, request_timeout, host, os.getpid, bool(self._address.user)
        )

    def wire(self) -> Wire:
        from .wires.wire import ZooKeeperWire

        return ZooKeeperWire(self._address, self._least, self._tree.root, self._tree.acl, self._timeout)

    async def async_wire(self) -> AsyncWire:
        from .wires.aio import AsyncZooKeeperWire

        return AsyncZooKeeperWire(self._address, self._least, self._tree.root, self._tree.acl, self._timeout)


def open_engine(url: object, namespace: str, request_timeout: float) -> ZooKeeperEngine:
    return ZooKeeperEngine(url, namespace, request_timeout)
