"""How a connection is made: psycopg for the address, TLS and passwords; the greeting; then libpq alone.

Statements go through psycopg's libpq wrapper (`psycopg.pq`), not through its cursors: a wire needs a bound on every
request, one value back, and less than half of the cost. Keep-alives are on, so that a dead peer is noticed.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from ....errors import BackendUnavailable, Misconfigured
from ..greeting import Refused, Talk, greet
from .aio_link import AsyncLink
from .link import Link, Silence
from .translation import unreachable

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


def shown(url: str) -> str:
    """The URL without its password."""
    return re.sub(r"(://[^/@:]*):[^/@]*@", r"\1:***@", re.sub(r"([?&]password=)[^&]*", r"\1***", url))


class Dialling:
    """Makes connections to one server."""

    def __init__(self, url: str, request_timeout: float) -> None:
        self._psycopg = psycopg = driver()
        self.timeout = request_timeout
        self._greeted = False
        try:
            given = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error as error:
            raise Misconfigured(f"{shown(url)!r} is not a URL that libpq understands: {error}") from error
        given = {"connect_timeout": str(max(2, round(request_timeout))), **DEFAULTS, **given}
        self._words = psycopg.conninfo.make_conninfo("", **given)

    def dial(self) -> Link:
        """A greeted connection."""
        try:
            connection = self._psycopg.connect(self._words, autocommit=True, prepare_threshold=None)
        except self._psycopg.Error as error:
            raise unreachable(error) from error
        link = Link(connection)
        talk = greet(link.told_pid, self.timeout)
        try:
            statement = next(talk)
            while True:
                try:
                    rows = link.say(statement, self.timeout)
                except Refused as error:
                    statement = talk.throw(error)
                else:
                    statement = talk.send(rows)
        except StopIteration as stop:
            link.begin(stop.value)
            self._greeted = True
            return link
        except BaseException as error:
            link.close()
            raise self._softened(error) from error

    async def dial_async(self) -> AsyncLink:
        """The same for asyncio."""
        try:
            connection = await self._psycopg.AsyncConnection.connect(
                self._words, autocommit=True, prepare_threshold=None
            )
        except self._psycopg.Error as error:
            raise unreachable(error) from error
        link = AsyncLink(connection, asyncio.get_running_loop())
        talk: Talk = greet(link.told_pid, self.timeout)
        try:
            statement = next(talk)
            while True:
                try:
                    rows = await link.say(statement, self.timeout)
                except Refused as error:
                    statement = talk.throw(error)
                else:
                    statement = talk.send(rows)
        except StopIteration as stop:
            link.begin(stop.value)
            self._greeted = True
            return link
        except BaseException as error:
            link.close()
            raise self._softened(error) from error

    def _softened(self, error: BaseException) -> BaseException:
        """What is a mistake at the first connection is a fault that may pass at a later one (a failover, mostly)."""
        if isinstance(error, Silence):
            return BackendUnavailable(f"PostgreSQL did not answer the greeting: {error}")
        if isinstance(error, Refused):
            return BackendUnavailable(f"PostgreSQL refused the greeting: {error} ({error.state})")
        if isinstance(error, Misconfigured) and self._greeted:
            return BackendUnavailable(f"PostgreSQL is not what it was: {error}")
        return error
