"""How a connection is made: PyMySQL for the address, TLS and the login; the greeting; keep-alives on both sides.

1. `request_timeout` bounds all of it together. PyMySQL bounds each read at most, and by default none, so a timer ends
   the connection that is not ready in time: a server that accepts and says nothing, or one byte a second, keeps nobody.
2. asyncio dials in a thread, with the same code: a connection is made once and used for long.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from ....errors import Misconfigured
from ...relational.talk import converse
from ...relational.url import shown
from ...relational.wires.dial import awaited_on_a_thread
from ..greeting import greet
from .aio_link import AsyncLink
from .link import Link
from .translation import TRANSLATION

PORT = 3306
TEXTS = frozenset({"unix_socket", "ssl_ca", "ssl_cert", "ssl_key", "read_default_file", "read_default_group"})
SWITCHES = frozenset({"ssl_verify_cert", "ssl_verify_identity", "ssl_disabled"})
DENIED = frozenset({1044, 1045, 1049, 1698})
TLS = frozenset({"ssl", "ctx", "_ssl_required"})
PREFERRED: dict[str, Any] = {}
"""What PyMySQL makes for TLS where nobody asked for any in particular. It takes 20 ms each time, so it is made once."""

KEEP_ALIVE = (("TCP_KEEPIDLE", 10), ("TCP_KEEPALIVE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
USER_TIMEOUT_MS = 25_000


def driver() -> Any:
    """PyMySQL, or what to install."""
    try:
        return import_module("pymysql")  # it has no types
    except ImportError as error:
        raise Misconfigured("mysql:// needs PyMySQL; pip install 'holdfast[mysql]'") from error


def read_url(url: str) -> dict[str, Any]:
    """What PyMySQL is to be told."""
    parts = urlsplit(url)
    if "@" in f"{parts.path}{parts.query}{parts.fragment}" and "@" not in parts.netloc and ":" in parts.netloc:
        raise Misconfigured(
            f"{shown(url)!r} can not be read: write / as %2F, ? as %3F, # as %23 and @ as %40 in a user or password"
        )
    words: dict[str, Any] = {"database": unquote(parts.path.removeprefix("/"))}
    if not words["database"] or "/" in words["database"]:
        raise Misconfigured(f"{shown(url)!r} names no database; it should look like mysql://user@host/database")
    try:
        words |= {"host": parts.hostname or "localhost", "port": parts.port or PORT}
    except ValueError:  # which quotes what it takes for the port: a piece of a password, perhaps
        raise Misconfigured(f"{shown(url)!r} is not a URL of MariaDB: its port is not a number") from None
    if parts.username is not None:
        words |= {"user": unquote(parts.username), "password": unquote(parts.password or "")}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name in TEXTS:
            words[name] = value
        elif name in SWITCHES and value in ("true", "false"):
            words[name] = value == "true"
        else:
            known = ", ".join(sorted(TEXTS | SWITCHES))
            raise Misconfigured(
                f"{shown(url).partition('?')[0]!r} has an option {name!r} that is not known, or not with this value; "
                f"there are {known} (switches: true, false)"
            )
    return words


class Dialling:
    """Makes connections to one server."""

    translation = TRANSLATION

    def __init__(self, url: str, request_timeout: float, statements: Sequence[bytes] = ()) -> None:
        self._pymysql = driver()
        self._statements = statements
        self.timeout = request_timeout
        self._greeted = False
        self._words = read_url(url)
        self._own_tls = bool(self._words.keys() & (TEXTS | SWITCHES) - {"unix_socket"})
        self._words |= dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"), request_timeout)

    def dial(self, words: Sequence[bytes] = ()) -> Link:
        """A greeted connection, on which these words were said; within the timeout."""
        try:
            connection = self._prepare()
        except (OSError, ValueError) as error:  # a certificate that is not there
            raise self.translation.unreachable(error) from error
        watch = threading.Timer(self.timeout, hang_up, (connection,))
        watch.daemon = True
        watch.start()
        try:
            return self._dial(connection, words)
        finally:
            watch.cancel()

    def _dial(self, connection: Any, words: Sequence[bytes]) -> Link:
        try:
            connection.connect()
        except self._pymysql.Error as error:
            if error.args and error.args[0] in DENIED and not self._greeted:
                raise Misconfigured(f"{product(connection)} does not let us in: {error.args[-1]}") from error
            raise self.translation.unreachable(error) from error
        except RuntimeError as error:  # a kind of password that needs a package which is not there
            raise Misconfigured(f"{product(connection)} can not be logged in to: {error}") from error
        except (OSError, ValueError) as error:  # an answer that is none
            raise self.translation.unreachable(error) from error
        link = Link(connection)
        keep_alive(link.socket)
        try:
            link.greeting = converse(greet(link.told_id, self.timeout), lambda text: link.say(text, self.timeout))
            if link.greeting.quick:
                for text in self._statements:
                    link.prepare(text, self.timeout)
            for text in words:
                link.say(text, self.timeout)
        except BaseException as error:
            link.close()
            raise self.translation.greeting(error, self._greeted) from error
        self._greeted = True
        return link

    def _prepare(self) -> Any:
        """PyMySQL's connection, before it is made."""
        words = self._words | {"autocommit": True, "charset": "utf8mb4", "program_name": "holdfast"}
        words["client_flag"] = self._pymysql.constants.CLIENT.FOUND_ROWS
        if self._own_tls:
            return self._pymysql.connect(defer_connect=True, **words)
        connection = self._pymysql.connect(defer_connect=True, ssl_disabled=bool(PREFERRED), **words)
        if PREFERRED:
            vars(connection).update(PREFERRED)
        else:
            PREFERRED.update({name: value for name, value in vars(connection).items() if name in TLS})
        return connection

    async def dial_async(self, words: Sequence[bytes] = ()) -> AsyncLink:
        """The same for asyncio, dialled on a thread."""
        link = await awaited_on_a_thread(lambda: self.dial(words), Link.close, self.translation)
        return AsyncLink(link, asyncio.get_running_loop())


def product(connection: Any) -> str:
    """What the server says it is, before the log-in. (A proxy may say anything.)"""
    version: str = getattr(connection, "server_version", None) or ""
    if not version or "MariaDB" in version:
        return "MariaDB"
    return f"the server (version {version}, not MariaDB, for which holdfast's tables are made)"


def hang_up(connection: Any) -> None:
    """End a connection that is being made; from any thread."""
    sock: socket.socket | None = connection._sock
    if sock is not None:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is closed already, or its handshake of TLS has a bound of its own


def keep_alive(sock: socket.socket) -> None:
    """A dead peer is noticed in 25 seconds, not in the system's two hours."""
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE:
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MS)
