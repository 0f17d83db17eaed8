"""How a connection is made: psycopg for the address, TLS and passwords; the greeting; then libpq alone.

Statements go through psycopg's libpq wrapper (`psycopg.pq`), not through its cursors: a wire needs a bound on every
request, one value back, and less than half of the cost. Keep-alives are on, so that a dead peer is noticed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from ....errors import Misconfigured
from ...relational.talk import converse, converse_async
from ...relational.wires.dial import Deadline
from ..greeting import Greeting, greet
from .aio_link import AsyncLink
from .link import Link
from .translation import TRANSLATION

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

    translation = TRANSLATION

    def __init__(self, url: str, request_timeout: float) -> None:
        self._psycopg = psycopg = driver()
        self.timeout = request_timeout
        self.greeting: Greeting | None = None  # of the last connection
        try:
            given = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error as error:
            raise Misconfigured(f"{shown(url)!r} is not a URL that libpq understands: {error}") from error
        given = {"connect_timeout": str(max(2, round(request_timeout))), **DEFAULTS, **given}
        self._words = psycopg.conninfo.make_conninfo("", **given)

    def dial(self, words: Sequence[bytes] = ()) -> Link:
        """A greeted connection, on which these words were said."""
        try:
            connection = self._psycopg.connect(self._words, autocommit=True, prepare_threshold=None)
        except self._psycopg.Error as error:
            raise self.translation.unreachable(error) from error
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

    async def dial_async(self, words: Sequence[bytes] = ()) -> AsyncLink:
        """The same for asyncio; here the timeout bounds all of it."""
        deadline = Deadline(self.timeout)
        try:
            async with asyncio.timeout(self.timeout):
                connection = await self._psycopg.AsyncConnection.connect(
                    self._words, autocommit=True, prepare_threshold=None
                )
        except self._psycopg.Error as error:
            raise self.translation.unreachable(error) from error
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
