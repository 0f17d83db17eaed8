"""A connection that is flows, for tests that talk to a server: each call is run to its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.clock import now
from holdfast.sync.client_driver import Monitor


class BlockingConnection:
    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._monitor = Monitor()

    def ask(self, order: Any, timeout: float) -> Any:
        connection = self.connection
        return self._monitor.run(connection.finish(connection.start(order), now() + timeout))

    def finish(self, request: Any, timeout: float) -> Any:
        return self._monitor.run(self.connection.finish(request, now() + timeout))

    def say(self, text: bytes, timeout: float) -> Any:
        return self._monitor.run(self.connection.say(text, now() + timeout))

    def close(self) -> None:
        self.connection.close()


class BlockingConnector:
    """`make` gets the words that each connection says first."""

    def __init__(self, make: Callable[[Sequence[bytes]], Any]) -> None:
        self._make = make

    def dial(self, words: Sequence[bytes] = ()) -> BlockingConnection:
        connector = self._make(words)
        return BlockingConnection(Monitor().run(connector.connect(now() + connector.timeout_s)))
