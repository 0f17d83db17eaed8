"""Where a blocking request goes: to the one primary, or to the node of a cluster that has its key."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from ....errors import BackendUnavailable
from ..resp import Error, command
from ..slots import Address, SlotMap
from ..trouble import redirection, translated
from .dialling import Dialler, Server
from .link import Link
from .links import Links

REFRESH_TIMEOUT = 5.0


class Servers(Protocol):
    """The servers of one engine."""

    def having(self, key: bytes) -> Links:
        """Who has this key."""
        ...

    def elsewhere(self, error: Error, asked: Links) -> tuple[Links, bool]:
        """Whom to ask instead after such an error, and whether to say ASKING first."""
        ...

    def every(self) -> Sequence[Links]:
        """All that have keys."""
        ...

    def close(self) -> None: ...


class Primary:
    """One server at a time. When it is no longer the primary, the next connection finds the one that is."""

    def __init__(self, dialler: Dialler, greet: Callable[[Link], None] | None = None) -> None:
        self._links = Links(dialler, greet)

    def having(self, key: bytes) -> Links:
        return self._links

    def elsewhere(self, error: Error, asked: Links) -> tuple[Links, bool]:
        self._links.drop_idle()
        return self._links, False

    def every(self) -> Sequence[Links]:
        return [self._links]

    def close(self) -> None:
        self._links.close()


class Cluster:
    """The primaries of a cluster; who has what is asked at the start and after every redirection."""

    def __init__(self, seeds: Sequence[Server]) -> None:
        self._seeds = seeds
        self._mutex = threading.Lock()
        self._links: dict[Address, Links] = {}
        self._slots = SlotMap()

    def having(self, key: bytes) -> Links:
        node = self._slots.node(key)
        if node is None:
            self.refresh()
            node = self._slots.node(key)
        if node is None:
            raise BackendUnavailable("the cluster has no node for some keys at this moment; see CLUSTER INFO")
        return self._to(node)

    def elsewhere(self, error: Error, asked: Links) -> tuple[Links, bool]:
        if error.code not in ("MOVED", "ASK"):
            self.refresh()
            return asked, False
        slot, host, port = redirection(error)
        if not host:
            host = next((node[0] for node, links in self._links.items() if links is asked), "")
        if error.code == "MOVED":
            self._slots.moved(slot, (host, port))
        return self._to((host, port)), error.code == "ASK"

    def every(self) -> Sequence[Links]:
        self.refresh()
        return [self._to(node) for node in self._slots.nodes()]

    def _to(self, node: Address) -> Links:
        if (links := self._links.get(node)) is None:
            with self._mutex:
                links = self._links.setdefault(node, Links(self._seeds[0].at(*node)))
        return links

    def refresh(self) -> None:
        """Ask any node that answers."""
        known = self._slots.nodes() + [(str(seed.options.get("host", "localhost")), seed.port) for seed in self._seeds]
        trouble: Exception = BackendUnavailable("the cluster has no nodes")
        for node in dict.fromkeys(known):
            links = self._to(node)
            try:
                link = links.get(REFRESH_TIMEOUT)
            except BackendUnavailable as error:
                trouble = error
                continue
            try:
                reply = link.exchange(command("CLUSTER", "SLOTS"), REFRESH_TIMEOUT)
            except BaseException as error:
                links.drop(link)
                if not isinstance(error, OSError):
                    raise
                trouble = BackendUnavailable(f"Redis at {node[0]}:{node[1]} did not answer: {error}")
                continue
            links.put(link)
            if not isinstance(reply, Error):
                self._slots.learn(reply, node)
                return
            trouble = translated(reply)
        raise trouble

    def close(self) -> None:
        for links in self._links.values():
            links.close()
