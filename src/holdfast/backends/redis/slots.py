"""Which node of a cluster has which slot."""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Iterable
from typing import Any, TypeAlias

SLOTS_COUNT = 16384
Address: TypeAlias = tuple[str, int]


def slot_of(key: bytes) -> int:
    """The slot of a key: of what stands in its first braces, if anything does."""
    start = key.find(b"{")
    if start >= 0:
        end = key.find(b"}", start + 1)
        if end > start + 1:
            key = key[start + 1 : end]
    return crc_hqx(key, 0) % SLOTS_COUNT


class SlotMap:
    """Primaries by slot, as the cluster last told us."""

    def __init__(self) -> None:
        self._nodes: list[Address | None] = [None] * SLOTS_COUNT
        self._known: list[Address] | None = []
        """All nodes that have slots; None: to be found out anew."""

    def learn(self, told: Iterable[Any], asked: Address) -> None:
        """From the reply to CLUSTER SLOTS. A node without a host is the one that was asked."""
        nodes: list[Address | None] = [None] * SLOTS_COUNT
        for first, last, primary, *_ in told:
            address = (primary[0].decode() if primary[0] else asked[0], primary[1])
            nodes[first : last + 1] = [address] * (last + 1 - first)
        self._nodes, self._known = nodes, None

    def moved(self, slot: int, address: Address) -> None:
        self._nodes[slot], self._known = address, None

    def node(self, key: bytes) -> Address | None:
        return self._nodes[slot_of(key)]

    def nodes(self) -> list[Address]:
        if self._known is None:
            self._known = sorted({node for node in self._nodes if node is not None})
        return self._known
