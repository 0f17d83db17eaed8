"""Opening connections: dial, TLS, log in, and ask sentinels who the primary is.

1. All of it has one deadline: the look-up of the name, TLS, the credentials of a user's own provider, and what is said
   first (`handshake`).
2. Sentinels are asked one after the other; one that hangs, or leads nowhere, costs a moment (`STAGGER_S`).
3. `all` has every connection of one client, also while it is being opened: whoever closes the client closes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakSet

from ..._core.flow import RANDOM, Blocking, Flow, Open, OpenConnection
from ...errors import BackendUnavailable, HoldfastError
from ..connections.gather import first
from ..connections.pool import closed_error
from .connection import RedisConnection
from .error_mapping import refused
from .handshake import HELLO, check_introduction, introduction, says_goodbye, subscribe
from .resp import Error, command
from .server import SentinelService, Server

STAGGER_S = 0.25
"""How long one of several servers is waited for before the next is asked, too (as RFC 8305 has it for addresses)."""
LEAST_DIAL_S = 1.0
"""An attempt that others wait for, too, is given so long, though whoever began it may have less time."""


class Connector:
    """Opens the connections of one client."""

    def __init__(self, channel_prefix: str) -> None:
        self._channel_prefix = channel_prefix
        self._sure = False
        """The server has let a connection listen: the next one does not ask before."""
        self.all: WeakSet[RedisConnection] = WeakSet()
        self.closed = False

    def connect(self, target: Server | SentinelService, deadline: float, listen: bool = False) -> Flow[RedisConnection]:
        """A connection that can be used; with `listen` it has a channel of its own, if its server lets us."""
        if isinstance(target, Server):
            return (yield from self._connect(target, deadline, listen))
        ways = [self._connect_through(sentinel, target, deadline, listen) for sentinel in target.sentinels]
        try:
            return (yield from first(ways, deadline, RedisConnection.close, STAGGER_S))
        except TimeoutError as error:
            raise refused(target.place, error) from error

    def _connect_through(
        self, sentinel: Server, target: SentinelService, deadline: float, listen: bool
    ) -> Flow[RedisConnection]:
        reply = yield from self.ask(sentinel, command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", target.service), deadline)
        if isinstance(reply, Error):
            raise refused(sentinel.place, reply)
        if not isinstance(reply, list):
            raise BackendUnavailable(
                f"the sentinel at {sentinel.place} knows no service {target.service!r}; is it the name in its settings?"
            )
        return (yield from self._connect(target.server.at(reply[0].decode(), int(reply[1])), deadline, listen))

    def ask(self, server: Server, frame: bytes, deadline: float) -> Flow[object]:
        """One command on a connection of its own."""
        link = yield from self._connect(server, deadline, listen=False)
        try:
            return (yield from link.exchange(frame, deadline))
        except OSError as error:
            raise refused(server.place, error) from error
        finally:
            link.close()

    def _connect(self, server: Server, deadline: float, listen: bool) -> Flow[RedisConnection]:
        try:
            tls: object | None = (yield Blocking(server.tls_context, deadline)) if server.secured else None
            credentials = yield from self._credentials(server, deadline)
            self._check_open()
            connection: OpenConnection = yield Open(server.endpoint(tls), deadline)
            link = RedisConnection(connection, self.all)
            try:
                self._check_open()
                yield from self._introduce(link, server, credentials, deadline, listen and server.pushes)
                self._check_open()
            except BaseException:
                link.close()
                raise
        except (OSError, Error) as error:
            raise refused(server.place, error) from error
        return link

    def _check_open(self) -> None:
        if self.closed:
            raise closed_error()

    def _credentials(self, server: Server, deadline: float) -> Flow[Sequence[str]]:
        if (provider := server.provider) is None:
            return server.credentials()
        try:
            said: Sequence[str] = yield Blocking(provider, deadline)
        except (TimeoutError, HoldfastError) as error:
            raise BackendUnavailable(f"the credential provider for Redis at {server.place} is too slow") from error
        except Exception as error:
            raise BackendUnavailable(
                f"the credential provider for Redis at {server.place} failed: {error!r}"
            ) from error
        return said

    def _introduce(
        self, link: RedisConnection, server: Server, credentials: Sequence[str], deadline: float, listen: bool
    ) -> Flow[None]:
        frames = introduction(server, credentials)
        channel, sure = "", listen and self._sure
        asked = [*frames, HELLO] if listen else frames
        if sure:
            channel = yield from self.new_channel()
            yield from link.send(b"".join([*asked, subscribe(channel)]), deadline)
        elif asked:
            yield from link.send(b"".join(asked), deadline)
        for frame in frames:
            check_introduction(frame, (yield from link.read(deadline)))
        if not listen:
            return
        if isinstance(hello := (yield from link.read(deadline)), Error):
            self._sure = False
            if says_goodbye(hello):
                raise hello
            if sure:  # on a connection of version 2 nothing else could be said after SUBSCRIBE
                raise ConnectionError("the server has let others listen, and does not any more")
            return
        if not sure:
            channel = yield from self.new_channel()
            yield from link.send(subscribe(channel), deadline)
        if isinstance((yield from link.read_any(deadline)), Error):
            self._sure = False
            return
        self._sure = True
        link.listens_on(channel)

    def new_channel(self) -> Flow[str]:
        high: float = yield RANDOM
        low: float = yield RANDOM
        return f"{self._channel_prefix}{int(high * 2**32):08x}{int(low * 2**32):08x}"

    def close(self) -> None:
        self.closed = True
        for link in list(self.all):
            link.close()

    def abandon(self) -> None:
        """In a forked child: they are the parent's."""
        for link in self.all:
            link.connection.abandon()
        self.all.clear()
