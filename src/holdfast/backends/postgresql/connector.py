"""How a connection is made: libpq for the log-in, TLS and passwords; the greeting. One deadline bounds all of it.

1. Names are looked up first, on a thread of their own (`address.py`). Of several addresses each gets an equal share of
   the time that is left, so that one which does not answer leaves some for the next.
2. A mistake (a password, a right, a standby) is `Misconfigured` at the first connection. At a later one it is a fault
   that may pass: a failover, mostly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..._core.flow import NOW, RANDOM, Blocking, FileWatch, Flow, WaitAny, WatchFile
from ...errors import HoldfastError, Misconfigured
from ..relational.connector import OpeningConnections, Unfinished
from ..relational.exchange import run_exchange
from .capabilities import greet
from .connection import PostgreSQLConnection
from .error_mapping import ERRORS
from .protocol import Parameters, ServerAddress, Transport

BAD_CODE = 1
"""Of `psycopg.pq.ConnStatus`."""
FAILED_CODE, READING_CODE, WRITING_CODE, OK_CODE = range(4)
"""Of `psycopg.pq.PollingStatus`."""
DENIED = re.compile(
    r"authentication failed|no password supplied|password.*not supported|does not exist|no pg_hba\.conf entry"
    r"|not permitted to log in|permission denied for database|not currently accepting connections"
    r"|server does not support SSL|certificate"
)
"""The server, or libpq, will say the same the next time. At a connection there is no SQLSTATE, only words."""


class PostgreSQLConnector:
    """Makes connections to one server; on each, `first_words` are said. `start` begins to connect."""

    errors = ERRORS

    def __init__(
        self,
        address: ServerAddress,
        timeout_s: float,
        start: Callable[[Parameters], Transport],
        first_words: Sequence[bytes] = (),
    ) -> None:
        self._address = address
        self.timeout_s = timeout_s
        self._start = start
        self._first_words = first_words
        self._greeted = False
        self.opening = OpeningConnections()

    def connect(self, deadline: float) -> Flow[PostgreSQLConnection]:
        began: float = yield NOW
        try:
            transport = yield from self._log_in(deadline)
        except TimeoutError as error:
            raise self.errors.too_late(max(0.0, deadline - began)) from error
        except (OSError, RuntimeError) as error:  # RuntimeError: no thread could be started
            raise self._not_connected(error) from error
        unfinished: Unfinished = transport
        try:
            watch: FileWatch = yield WatchFile(transport.handle.socket, transport)
            transport.keep(watch)
            connection = PostgreSQLConnection(transport, watch)
            self.opening.discard(transport)
            self.opening.add(connection)  # whoever closes it tells the flow that waits on it
            unfinished = connection
            yield from self._greet(connection, deadline)
        except BaseException:
            unfinished.close()
            raise
        finally:
            self.opening.discard(unfinished)
        connection.heard_at = yield NOW
        self._greeted = True
        return connection

    def _log_in(self, deadline: float) -> Flow[Transport]:
        """The first attempt that succeeds; else an error of all of them."""
        address = self._address
        attempts: list[Parameters] = yield Blocking(address.attempts, deadline)
        if address.shuffled:
            attempts = yield from _shuffled(attempts)
        failures: list[tuple[Parameters, OSError]] = []
        attempts = address.in_turn(attempts)
        for number, attempt in enumerate(attempts):
            now: float = yield NOW
            if now >= deadline:
                break
            share_s = min((deadline - now) / (len(attempts) - number), address.most_per_attempt_s)
            try:
                return (yield from self._attempt(attempt, now + share_s))
            except OSError as error:
                failures.append((attempt, error))
        raise _of_all(failures)

    def _attempt(self, attempt: Parameters, deadline: float) -> Flow[Transport]:
        transport: Transport = yield Blocking(lambda: self._start(attempt), deadline)
        self.opening.add(transport)
        try:
            yield from _poll(transport, deadline)
        except BaseException as error:
            self.opening.discard(transport)
            transport.close()
            if isinstance(error, transport.error):
                raise ConnectionError(str(error)) from error
            raise
        return transport

    def _not_connected(self, error: Exception) -> HoldfastError:
        if not self._greeted and DENIED.search(str(error)):
            return Misconfigured(
                f"PostgreSQL does not let us in: {' '.join(str(error).split())}; check user, password, database and "
                "the TLS options of the URL"
            )
        return self.errors.unreachable(error)

    def _greet(self, connection: PostgreSQLConnection, deadline: float) -> Flow[None]:
        try:
            talk = greet(connection.number, self.timeout_s)
            greeting = yield from run_exchange(talk, lambda text: connection.say(text, deadline))
            for text in self._first_words:
                yield from connection.say(text, deadline)
        except Exception as error:
            known = self.errors.greeting(error, self._greeted)
            if known is error:
                raise
            raise known from error
        connection.begin(greeting)


def _poll(transport: Transport, deadline: float) -> Flow[None]:
    """Until the server has let us in."""
    handle = transport.handle
    while True:
        if handle.status == BAD_CODE:
            raise ConnectionError(f"connection is bad: {handle.get_error_message()}")
        status = handle.connect_poll()
        if status == OK_CODE:
            handle.nonblocking = 1
            return
        if status == FAILED_CODE:
            raise ConnectionError(f"connection failed: {handle.get_error_message()}")
        transport.begin_wait()
        try:
            ready = yield WaitAny((transport.file(status == WRITING_CODE),), deadline)
        finally:
            transport.end_wait()
        if not ready:
            raise TimeoutError("connection timeout expired")


def _of_all(failures: list[tuple[Parameters, OSError]]) -> OSError:
    """The last one, with the words of all."""
    if not failures:
        return TimeoutError("connection timeout expired")
    last = failures[-1][1]
    if len(failures) == 1:
        return last
    lines = [str(last), "Multiple connection attempts failed. All failures were:"]
    for attempt, error in failures:
        host, port, address = map(attempt.get, ("host", "port", "hostaddr"))
        lines.append(f"- host: {host!r}, port: {port!r}, hostaddr: {address!r}: {error}")
    return (TimeoutError if isinstance(last, TimeoutError) else ConnectionError)("\n".join(lines))


def _shuffled(attempts: list[Parameters]) -> Flow[list[Parameters]]:
    rest, drawn = attempts[:], []
    while rest:
        chance: float = yield RANDOM
        drawn.append(rest.pop(int(chance * len(rest))))
    return drawn
