"""The URL: `mysql://user:password@host:port/database?option=…`, and what a connection is made with.

PyMySQL reads the options (an option file, the certificates), as it does for its own connections.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, unquote, unquote_to_bytes, urlsplit

from ..._core.flow import Endpoint
from ...errors import Misconfigured
from ..relational.url import shown
from .handshake import Login

PORT = 3306
TEXTS = frozenset({"unix_socket", "ssl_ca", "ssl_cert", "ssl_key", "read_default_file", "read_default_group"})
SWITCHES = frozenset({"ssl_verify_cert", "ssl_verify_identity", "ssl_disabled"})
FILES = frozenset({"read_default_file", "read_default_group"})
KEEP_ALIVE = tuple(
    (getattr(socket, name), value)
    for name, value in (
        *(("TCP_KEEPIDLE", 10), ("TCP_KEEPALIVE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)),
        ("TCP_USER_TIMEOUT", 25_000),
    )
    if hasattr(socket, name)
)
"""A dead peer is noticed in 25 seconds, not in the system's two hours."""
PREFERRED: list[object] = []
"""What PyMySQL makes for TLS where nobody asked for any in particular. It takes 20 ms each time, so it is made once."""


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
            f"{shown(url)!r} cannot be read: write / as %2F, ? as %3F, # as %23 and @ as %40 in a user or password"
        )
    words: dict[str, Any] = {"database": unquote(parts.path.removeprefix("/"))}
    if not words["database"] or "/" in words["database"]:
        raise Misconfigured(f"{shown(url)!r} names no database; it should look like mysql://user@host/database")
    try:
        words |= {"host": parts.hostname or "localhost", "port": parts.port or PORT}
    except ValueError:  # which quotes what it takes for the port: a piece of a password, perhaps
        raise Misconfigured(f"{shown(url)!r} is not a URL of MariaDB: its port is not a number") from None
    if parts.username is not None:
        words["user"] = unquote(parts.username)
        words["password"] = unquote_to_bytes(parts.password or "")  # of text, PyMySQL would make latin-1
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


def read_login(url: str) -> Callable[[], Login]:
    """What to log in with. An option file is read for each connection, and so are the certificates that it names."""
    pymysql, words = driver(), read_url(url)
    own_tls = bool(words.keys() & (TEXTS | SWITCHES) - {"unix_socket"})
    made: list[Login] = []

    def login() -> Login:
        if not made or words.keys() & FILES:
            made[:] = [_login(pymysql, words, own_tls)]
        return made[0]

    return login


def _login(pymysql: Any, words: dict[str, Any], own_tls: bool) -> Login:
    """Raises OSError or ValueError: a certificate that is not there, or none."""
    preferred = bool(PREFERRED) and not own_tls
    more = {"ssl_disabled": True} if preferred else {}
    read = pymysql.connect(defer_connect=True, charset="utf8mb4", **words, **more)
    tls = PREFERRED[0] if preferred else read.ctx if read.ssl else None
    if not own_tls and not PREFERRED:
        PREFERRED.append(tls)
    user, database = (each.encode() if isinstance(each, str) else each for each in (read.user, read.db))
    endpoint = Endpoint(
        read.host,
        read.port,
        read.unix_socket or "",
        keepalive_options=KEEP_ALIVE,
        source_host=read.bind_address or "",
    )
    attributes = {"_client_name": "holdfast", "_pid": str(os.getpid()), "program_name": "holdfast"}
    scrambles = import_module("pymysql._auth")
    return Login(
        endpoint, user or b"", read.password, database, read.host, tls, read._ssl_required, attributes, scrambles
    )
