"""One node: the connection to it, or why there is none, what it owes, and what it tells unasked.

1. Replies come in the order of requests. One whose round is over is dropped when it comes: so a node that answers late
   never answers the wrong question.
2. Sending never waits: see `Connection.write`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ..._core.flow import OpenConnection
from ..connections.multiplexer import Pending
from ..redis.connection import RedisConnection
from ..redis.reader import PUSHED, make_reader
from ..redis.resp import NOT_YET, NotRedis, Reply
from ..redis.server import Server
from .fanout import Fanout, Tally


class PendingRound(Pending):
    """A request under way. `done` also means that no answer is of any use any more."""

    __slots__ = ("_tally", "again", "began", "left", "need", "nodes", "request")

    def __init__(self, request: Fanout, began: float, nodes: int, need: int) -> None:
        self.done = False
        self.event = None
        self.request = request
        self.began = began
        self.nodes = nodes
        self.need = need
        self._tally: Tally | None = None
        self.left = 0
        """The nodes (`Node.bit`) that have been asked, and have not answered."""
        self.again = 0
        """Those whose connection ended before they answered: they are asked once more."""

    @property
    def tally(self) -> Tally:
        """Made when it is needed: a round in which all is well does without (`QuorumConnections.ask_usual`)."""
        if self._tally is None:
            asked = self.nodes if self.request.only is None else 1
            self._tally = Tally(self.request.until, self.nodes, asked, self.need)
        return self._tally


class PendingTurn(Pending):
    """Somebody who waits to be told. `told`: by which nodes (`Node.bit`); done with the first, and with a majority."""

    __slots__ = ("told",)

    def __init__(self, told: int) -> None:
        super().__init__()
        self.told = told


class Node:
    """What a client knows of one node."""

    __slots__ = (
        "_feed", "_gets", "_link", "behind", "bit", "closed_until", "connection", "dialled", "forgetful", "index",
        "listens", "owed", "place", "redial", "sends_rest", "server", "slow", "told", "unsent", "waiting", "whole",
        "why", "write",
    )  # fmt: skip

    def __init__(self, index: int, server: Server, place: str) -> None:
        self.index = index
        self.bit = 1 << index
        self.server = server
        self.place = place
        self._link: RedisConnection | None = None
        self.connection: OpenConnection | None = None
        self.write: Callable[[bytes], bool] = lambda data: True
        self.why = "not connected yet"
        self.dialled = False
        """A connection is being made."""
        self.redial = True
        """Its last connection was good until it ended: it is made again with the next request."""
        self.closed_until = 0.0
        """It could not be reached, and is not tried again before."""
        self.owed: deque[PendingRound] = deque()
        """Whose replies are to come, in this order."""
        self.told: list[str] = []
        """Whose turn it is, as it has told, and nobody has looked yet."""
        self.listens = False
        """It tells, on this connection."""
        self.waiting: list[PendingRound] = []
        """What it is asked once it is connected."""
        self.unsent: list[bytes] = []
        """Requests that leave together, a moment later."""
        self.sends_rest = self.behind = False
        """A flow sends what did not fit; and there is more of it since it began."""
        self.slow = False
        """It did not answer soon, last time."""
        self.forgetful = False
        """It said that it has lost its memory."""
        self.whole = True
        """All that came has been taken in: nothing of a reply is kept until the rest of it comes."""

    def connected(self, link: RedisConnection) -> None:
        reader = make_reader()
        self._feed, self._gets = reader.feed, reader.gets
        self.whole = True
        self._link, self.connection, self.write = link, link.connection, link.connection.write
        self.redial = True
        self.slow = self.forgetful = False
        self.listens = bool(link.channel)

    def flush(self) -> bool:
        """False if some of what waits to be sent did not fit."""
        unsent, self.unsent = self.unsent, []
        return not unsent or self.write(unsent[0] if len(unsent) == 1 else b"".join(unsent))

    def take_in(self, data: bytes) -> list[tuple[PendingRound, Reply]]:
        """What these bytes answer of rounds under way. Raises `NotRedis` where it is no reply to anything."""
        self._feed(data)
        owed, answered = self.owed, list[tuple[PendingRound, Reply]]()
        while (reply := self._gets()) is not NOT_YET:
            if reply.__class__ is PUSHED:
                if isinstance(reply, list) and reply[0] == b"message":
                    self.told.append(bytes(reply[2]).decode())
                continue
            if not owed:
                raise NotRedis("it answers what nobody has asked")
            round_ = owed.popleft()
            if reply == b"A":
                self.forgetful = True
            if not round_.done:
                answered.append((round_, reply))
        self.whole = not owed
        return answered

    def lose(self, error: Exception) -> list[PendingRound]:
        """No connection any more. Answers with what was asked, or was to be asked, on it."""
        self.why = str(error) or type(error).__name__
        if self._link is not None:
            self._link.close()
            self._link = self.connection = None
            self.listens = False
        asked = [*self.owed, *self.waiting]
        self.owed.clear()
        self.waiting, self.unsent = [], []
        return asked
