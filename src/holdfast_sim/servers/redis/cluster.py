"""A cluster: which node has which slot, as each node sees it."""

from __future__ import annotations

from .protocol import Reply


class ClusterNode:
    """One node's part in a cluster."""

    def check(self, keys: list[bytes], database: int, asking: bool) -> None:
        raise NotImplementedError

    def answer(self, question: bytes) -> Reply:
        raise NotImplementedError

    def broadcast(self, channel: bytes, message: bytes) -> None:
        raise NotImplementedError
