"""Who waits to be told by the nodes that it is its turn (see `scripts/turns.lua`).

1. A majority that tells has reserved the name: whoever it is for asks, and gets it. Fewer may still be followed by
   others, which differ by what has reached them when; so they are waited for, for as long as a reservation lasts, and
   then it asks all the same.
2. A node may tell before the reply to the take has come, and before its owner waits: that is kept for a while.
3. Where less than a majority can tell (a proxy, a user without the right to SUBSCRIBE), waiters ask by themselves.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from ..._core.flow import NOW, RANDOM, Flow, Sleep
from .connection import Node, PendingTurn

if TYPE_CHECKING:
    from .replies import NodeReplies

MOST_EARLY_COUNT = 1024
RESERVED_S = 0.2
"""As in `scripts/turns.lua`."""
POLL_S = 0.1
"""How often a waiter asks at the latest that cannot be told."""


class Turns:
    """The waiters of one client."""

    def __init__(self, connections: NodeReplies) -> None:
        self._connections = connections
        self._waiting: dict[str, PendingTurn] = {}
        self._early: OrderedDict[str, int] = OrderedDict()

    def tell(self, node: Node) -> None:
        """What a node has told."""
        told, node.told = node.told, []
        for owner in told:
            if (turn := self._waiting.get(owner)) is None:
                self._early[owner] = self._early.get(owner, 0) | node.bit
                if len(self._early) > MOST_EARLY_COUNT:
                    self._early.popitem(last=False)
                continue
            first, turn.told = not turn.told, turn.told | node.bit
            if first or self._is_sure(turn):
                self._connections.finish(turn)

    def _is_sure(self, turn: PendingTurn) -> bool:
        return turn.told.bit_count() >= self._connections.need

    def wait(self, owner: str, deadline: float) -> Flow[None]:
        """Until it is the turn of this owner, or the time is over."""
        connections = self._connections
        now: float = yield NOW
        chance: float = yield RANDOM
        if sum(node.listens for node in connections.nodes) < connections.need:
            yield Sleep(max(0.0, min(deadline - now, POLL_S * chance)))
            return
        turn = self._waiting[owner] = PendingTurn(self._early.pop(owner, 0))
        try:
            if turn.told or (yield from connections.until(turn, deadline)):
                now = yield NOW
                turn.done = self._waiting.get(owner) is not turn or self._is_sure(turn)
                yield from connections.until(turn, min(deadline, now + RESERVED_S * (1 + chance)))
        finally:
            if self._waiting.get(owner) is turn:
                del self._waiting[owner]

    def forget(self, owner: str) -> None:
        """It waits no longer."""
        self._early.pop(owner, None)
        if (turn := self._waiting.pop(owner, None)) is not None:
            self._connections.finish(turn)

    def close(self) -> None:
        for owner in list(self._waiting):
            self.forget(owner)
