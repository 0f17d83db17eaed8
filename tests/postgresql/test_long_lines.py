"""What a verb reads does not grow with those who wait: rows and entries of indexes, counted by the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.backends.postgresql.codec import Codec
from holdfast.model import LockSpec
from tests.postgresql.house import connector
from tests.postgresql.server import Server
from tests.relational.blocking import BlockingConnection
from tests.relational.long_lines import Ask, Cost, batch_costs, flat, kinds

READ = b"""SELECT sum(pg_stat_get_xact_tuples_returned(c.oid) + pg_stat_get_xact_tuples_fetched(c.oid))
    FROM pg_class c WHERE c.relname LIKE 'holdfast_claim%'"""


@pytest.fixture(scope="module")
def link(server: Server) -> Iterator[BlockingConnection]:
    server.execute("CREATE DATABASE long_lines")
    link = connector(server.url("long_lines")).dial()
    yield link
    link.close()


@kinds
def test_the_same_for_many(link: BlockingConnection, specs: list[LockSpec], request: Any) -> None:
    lines = iter(range(10))

    def line() -> tuple[Ask, Cost]:
        codec = Codec(f"{request.node.name}{next(lines)}", "host", 7)

        def ask(asked: Any) -> Any:
            return link.ask(codec.write(asked, b"box", True), 20.0)

        def cost(asked: Any) -> int:
            link.say(b"BEGIN", 5.0)
            before = int(link.say(READ, 5.0)[0][0] or 0)
            ask(asked)
            after = int(link.say(READ, 5.0)[0][0] or 0)
            link.say(b"COMMIT", 5.0)
            return after - before

        return ask, cost

    flat(specs, line)
    flat(specs, line, of=batch_costs)
