"""What a verb reads does not grow with those who wait: rows, counted by the server (`Handler_read…`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.backends.mysql.codec import Codec
from holdfast.model import LockSpec
from tests.mysql.conftest import new_database
from tests.mysql.house import connector
from tests.mysql.server import Server
from tests.relational.blocking import BlockingConnection
from tests.relational.long_lines import Ask, Cost, batch_costs, flat, kinds

WAKE = 7
READ = b"SHOW SESSION STATUS WHERE Variable_name LIKE 'Handler_read%' AND Variable_name NOT LIKE '%rnd%'"
"""All but the reading of temporary tables, which this statement does itself."""


@pytest.fixture(scope="module")
def link(server: Server) -> Iterator[BlockingConnection]:
    link = connector(server.url(new_database(server))).dial()
    yield link
    link.close()


@kinds
def test_the_same_for_many(link: BlockingConnection, specs: list[LockSpec], request: Any) -> None:
    lines = iter(range(10))

    def line() -> tuple[Ask, Cost]:
        codec = Codec(f"{request.node.name}{next(lines)}", "host", 7)

        def ask(asked: Any) -> Any:
            return link.ask(codec.write(asked, WAKE), 20.0)

        def read() -> int:
            return sum(int(value) for _, value in link.say(READ, 5.0).rows)

        def cost(asked: Any) -> int:
            before = read()
            ask(asked)
            return read() - before

        return ask, cost

    flat(specs, line)
    flat(specs, line, of=batch_costs)
