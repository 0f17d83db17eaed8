"""How a connection is made: psycopg for the address, TLS and passwords; the greeting; then libpq alone.

Statements go through psycopg's libpq wrapper (`psycopg.pq`), not through its cursors: a wire needs a bound on every
request, one value back, and less than half of the cost. Keep-alives are on, so that a dead peer is noticed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from ....errors import HoldfastError, Misconfigured
from ...relational.talk import converse, converse_async
from ...relational.url import shown
from ...relational.wires.dial import Deadline
from ..error_mapping import ERRORS
from ..greeting import Greeting, greet
from .aio_link import AsyncLink
from .link import Link

DEFAULTS = {
    "application_name": "holdfast",
    "client_encoding": "utf8",
    "keepalives": "1",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}


def driver() -> Any:
    """psycopg 3, or what to install."""
    try:
        import psycopg
    except ImportError as error:
        raise Misconfigured("postgresql:// needs psycopg 3; pip install 'holdfast[postgresql]'") from error
    return psycopg


DENIED = re.compile(
    r"authentication failed|no password supplied|password.*not supported|does not exist|no pg_hba\.conf entry"
    r"|not permitted to log in|permission denied for database|not currently accepting connections"
    r"|server does not support SSL|certificate"
)
"""The server, or libpq, will say the same the next time. At a connection there is no SQLSTATE, only words."""


class Dialling:
    """Makes connections to one server."""

    translation = ERRORS

    def __init__(self, url: str, request_timeout: float) -> None:
        self._psycopg = psycopg = driver()
        self.timeout = request_timeout
        self.greeting: Greeting | None = None  # of the last connection
        try:
            given = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error as error:
            known = shown(url)  # what libpq quotes may be a piece of the password
            why = re.sub(r'"([^"]*)"', lambda quoted: quoted[0] if quoted[1] in known else '"…"', str(error).strip())
            raise Misconfigured(f"{known!r} is not a URL that libpq understands: {why}") from None
        if "@" in f"{given.get('host')}" or ("@" in f"{given.get('dbname')}" and "user" not in given):
            raise Misconfigured(
                f"{shown(url)!r} can not be read: write / as %2F, @ as %40 and : as %3A in a user or password"
            )
        given = {"connect_timeout": str(max(2, round(request_timeout))), **DEFAULTS, **given}
        self._words = psycopg.conninfo.make_conninfo("", **given)

    def dial(self, words: Sequence[bytes] = ()) -> Link:
        """A greeted connection, on which these words were said."""
        try:
            connection = self._psycopg.connect(self._words, autocommit=True, prepare_threshold=None)
        except self._psycopg.Error as error:
            raise self._not_connected(error) from error
        link = Link(connection)
        deadline = Deadline(self.timeout)
        try:
            link.begin(converse(greet(link.told_id, self.timeout), lambda text: link.say(text, deadline.left)))
            for text in words:
                link.say(text, deadline.left)
        except BaseException as error:
            link.close()
            raise self.translation.greeting(error, self.greeting is not None) from error
        self.greeting = link.greeting
        return link

    def _not_connected(self, error: Exception) -> HoldfastError:
        """A mistake at the first connection is a fault that may pass at a later one: a failover, mostly."""
        if self.greeting is None and DENIED.search(str(error)):
            return Misconfigured(
                f"PostgreSQL does not let us in: {' '.join(str(error).split())}; check user, password, database and "
                "the TLS options of the URL"
            )
        return self.translation.unreachable(error)

    async def dial_async(self, words: Sequence[bytes] = ()) -> AsyncLink:
        """The same for asyncio; here the timeout bounds all of it."""
        deadline = Deadline(self.timeout)
        try:
            async with asyncio.timeout(self.timeout):
                connection = await self._psycopg.AsyncConnection.connect(
                    self._words, autocommit=True, prepare_threshold=None
                )
        except self._psycopg.Error as error:
            raise self._not_connected(error) from error
        except TimeoutError:
            raise self.translation.too_late(self.timeout) from None
        link = AsyncLink(connection, asyncio.get_running_loop())
        try:
            talk = greet(link.told_id, self.timeout)
            link.begin(await converse_async(talk, lambda text: link.say(text, deadline.left)))
            for text in words:
                await link.say(text, deadline.left)
        except BaseException as error:
            link.close()
            raise self.translation.greeting(error, self.greeting is not None) from error
        self.greeting = link.greeting
        link.open()
        return link
