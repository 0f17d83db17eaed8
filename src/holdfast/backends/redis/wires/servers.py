"""Where a blocking request goes: to the one primary, or to the node of a cluster that has its key."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from ....errors import BackendUnavailable
from ..resp import Error
from ..slots import Address
from ..trouble import redirection
from .dialling import Dialler
from .link import Link
from .links import Links
from .topology import Topology


class Servers(Protocol):
    """The servers of one engine. What may take some time is given a timeout."""

    def having(self, key: bytes, timeout: float) -> Links:
        """Who has this key."""
        ...

    def elsewhere(self, error: Error, asked: Links, key: bytes, timeout: float) -> tuple[Links, bool]:
        """Whom to ask instead after such an error, and whether to say ASKING first."""
        ...

    def failed(self, asked: Links) -> None:
        """It could not be reached, or did not answer."""
        ...

    def instead(self, asked: Links, key: bytes, timeout: float) -> Links | None:
        """Who has the key of one that could not be reached, if that is somebody else by now."""
        ...

    def every(self, timeout: float) -> Sequence[Links]:
        """All that have keys."""
        ...

    def close(self) -> None: ...


class Primary:
    """One server at a time. When it is no longer the primary, the next connection finds the one that is."""

    def __init__(self, dialler: Dialler, greet: Callable[[Link, float], None] | None = None) -> None:
        self._links = Links(dialler, greet)

    def having(self, key: bytes, timeout: float) -> Links:
        return self._links

    def elsewhere(self, error: Error, asked: Links, key: bytes, timeout: float) -> tuple[Links, bool]:
        self._links.drop_idle()
        return self._links, False

    def failed(self, asked: Links) -> None:
        pass  # the next connection finds out

    def instead(self, asked: Links, key: bytes, timeout: float) -> Links | None:
        return None

    def every(self, timeout: float) -> Sequence[Links]:
        return [self._links]

    def close(self) -> None:
        self._links.close()


class Cluster:
    """The primaries of a cluster; who has what is told by `Topology`."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._mutex = threading.Lock()
        self._links: dict[Address, Links] = {}

    def having(self, key: bytes, timeout: float) -> Links:
        node = self._topology.node(key)
        if node is None:
            self._look(timeout)
            node = self._topology.need(key)
        return self._to(node)

    def elsewhere(self, error: Error, asked: Links, key: bytes, timeout: float) -> tuple[Links, bool]:
        if error.code not in ("MOVED", "ASK"):
            self._look(timeout)
            return self._to(self._topology.need(key)), False
        slot, host, port = redirection(error)
        node = (host or self._place(asked)[0], port)
        if error.code == "MOVED":
            self._topology.moved(slot, node)
        return self._to(node), error.code == "ASK"

    def failed(self, asked: Links) -> None:
        asked.drop_idle()
        self._topology.suspect(self._place(asked))

    def instead(self, asked: Links, key: bytes, timeout: float) -> Links | None:
        try:
            self._look(timeout)
        except BackendUnavailable:
            return None
        links = self._to(self._topology.need(key))
        return None if links is asked else links

    def every(self, timeout: float) -> Sequence[Links]:
        self._look(timeout)
        return [self._to(node) for node in self._topology.nodes()]

    def _look(self, timeout: float) -> None:
        try:
            self._topology.look().wait(timeout)
        except TimeoutError as error:
            raise BackendUnavailable(f"no node of the cluster told within {timeout:g} s who has what") from error

    def _place(self, asked: Links) -> Address:
        return next((node for node, links in self._links.items() if links is asked), ("", 0))

    def _to(self, node: Address) -> Links:
        if (links := self._links.get(node)) is None:
            with self._mutex:
                links = self._links.setdefault(node, Links(self._topology.server(node)))
        return links

    def close(self) -> None:
        for links in list(self._links.values()):
            links.close()
