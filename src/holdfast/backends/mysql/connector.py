"""How a connection is made: dial, TLS, log-in, the greeting, what is prepared. One deadline bounds all of it.

A mistake (a password, a right, another product) is `Misconfigured` at the first connection. At a later one it is a
fault that may pass: a failover, mostly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..._core.flow import NOW, Connection, Flow, Open, Receive, Send, StartTls
from ...errors import Misconfigured
from ..relational.connector import OpeningConnections
from ..relational.error_mapping import Refused
from ..relational.exchange import run_exchange
from .capabilities import greet
from .connection import MariaDBConnection
from .error_mapping import ERRORS
from .handshake import Handshake, Hello, Login, PacketReader, StartEncryption
from .packets import Garbled

CHARACTERS = b"SET NAMES utf8mb4, sql_select_limit = 18446744073709551615, sql_big_selects = 1"
"""And rows: the server's defaults may cut the answers to what is asked next."""
DENIED = frozenset({1044, 1045, 1049, 1130, 1698, 1820, 1862, 4151})
"""Also hosts and accounts that are locked out, and passwords that have expired."""


class MariaDBConnector:
    """Makes connections to one server; on each, `first_words` are said, and `statements` prepared if that is possible.

    `login` is asked at each connection: an option file may have changed.
    """

    errors = ERRORS

    def __init__(
        self,
        login: Callable[[], Login],
        timeout_s: float,
        statements: Sequence[bytes] = (),
        first_words: Sequence[bytes] = (),
    ) -> None:
        self._login = login
        self.timeout_s = timeout_s
        self._statements = statements
        self._first_words = first_words
        self._greeted = False
        self.opening = OpeningConnections()

    def connect(self, deadline: float) -> Flow[MariaDBConnection]:
        try:
            login = self._login()
        except (OSError, ValueError) as error:  # ValueError: a certificate that is none
            what = f"a file of ssl_ca, ssl_cert, ssl_key or read_default_file cannot be used: {error}; check its path"
            raise self.errors.unreachable(Exception(what)) from error
        try:
            connection: Connection = yield Open(login.endpoint, deadline)
        except OSError as error:
            what = f"{login.endpoint}: {error}; is it running, and reachable from here?"
            raise self.errors.unreachable(Exception(what)) from error
        self.opening.add(connection)
        try:
            made = yield from self._enter(connection, login, deadline)
        except BaseException:
            connection.close()
            raise
        finally:
            self.opening.discard(connection)
        made.heard_at = yield NOW
        self._greeted = True
        return made

    def _enter(self, connection: Connection, login: Login, deadline: float) -> Flow[MariaDBConnection]:
        handshake = Handshake(login)
        try:
            hello = yield from self._log_in(connection, login, handshake, deadline)
        except Refused as error:
            self._check_denied(error, handshake)
            raise self.errors.unreachable(Exception(f"{error} ({error.code})")) from error
        except RuntimeError as error:  # a kind of password that needs a package which is not there
            raise Misconfigured(f"{handshake.product} cannot be logged in to: {error}") from error
        except (OSError, Garbled) as error:
            raise self.errors.unreachable(error) from error
        made = MariaDBConnection(connection, hello.session)
        try:
            yield from made.say(CHARACTERS, deadline)
            made.greeting = yield from run_exchange(
                greet(hello.session, self.timeout_s), lambda text: made.say(text, deadline)
            )
            if made.greeting.quick:
                for text in self._statements:
                    yield from made.prepare(text, deadline)
            for text in self._first_words:
                yield from made.say(text, deadline)
        except Exception as error:
            self._check_denied(error, handshake)
            known = self.errors.greeting(error, self._greeted)
            if known is error:
                raise
            raise known from error
        return made

    def _check_denied(self, error: Exception, handshake: Handshake) -> None:
        if isinstance(error, Refused) and error.code in DENIED and not self._greeted:
            raise Misconfigured(f"{handshake.product} does not let us in: {error}") from error

    def _log_in(self, connection: Connection, login: Login, handshake: Handshake, deadline: float) -> Flow[Hello]:
        talk, packets = handshake.log_in(), PacketReader()
        try:
            words = next(talk)
            while True:
                if isinstance(words, StartEncryption):
                    yield Send(connection, words.packet, deadline)
                    yield StartTls(connection, login.tls, login.host, deadline)
                    words = next(talk)
                    continue
                if words:
                    yield Send(connection, words, deadline)
                while (packet := packets.next()) is None:
                    received: bytes = yield Receive(connection, deadline)
                    if not received:
                        raise ConnectionError("the server ended the connection during the log-in")
                    packets.feed(received)
                words = talk.send(packet)
        except StopIteration:
            assert handshake.hello is not None
            return handshake.hello
