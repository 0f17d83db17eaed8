"""Opening a connection to a node: dial, TLS, log in (`redis.connector`), and the handshake of a quorum."""

from __future__ import annotations

from ..._core.flow import RANDOM, Flow
from ..redis.connection import RedisConnection
from ..redis.connector import Connector
from ..redis.handshake import subscribe
from ..redis.resp import Error
from ..redis.server import Server
from .handshake import Handshake, check

DIAL_TIMEOUT_S = 1.0
"""For a new connection, from its first packet to the end of its handshake."""


class NodeConnector:
    """Opens the connections of one client, and closes all of them, also those that are being opened."""

    def __init__(self, handshake: Handshake) -> None:
        self._connector = Connector("")
        self._handshake = handshake
        self.close = self._connector.close
        self.abandon = self._connector.abandon

    def connect(self, server: Server, began: float) -> Flow[RedisConnection]:
        """A connection to a node that can be used."""
        deadline = began + DIAL_TIMEOUT_S
        link = yield from self._connector.connect(server, deadline)
        try:
            replies = yield from link.exchange_all(self._handshake.questions(), deadline)
            high: float = yield RANDOM
            low: float = yield RANDOM
            hello = self._handshake.hello(replies, f"{int(high * 2**32):08x}{int(low * 2**32):08x}")
            listens = not isinstance(replies[0], Error)  # in version 2 nothing could be asked after SUBSCRIBE
            channel = self._handshake.channel
            yield from link.send(hello + subscribe(channel) if listens else hello, deadline)
            check((yield from link.read(deadline)))
            if listens and not isinstance((yield from link.read_any(deadline)), Error):
                link.listens_on(channel)
        except BaseException as error:
            link.close()
            if isinstance(error, TimeoutError):
                raise TimeoutError(f"it did not answer within {DIAL_TIMEOUT_S:g} s") from None
            raise
        return link
