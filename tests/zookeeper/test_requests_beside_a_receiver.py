"""A request that finds another flow receiving, by hand: it goes out, and does not wait for what cannot run."""

from __future__ import annotations

from typing import Any

from holdfast._core.flow import NEW_EVENT, NOW, Endpoint, WaitEvent
from holdfast.backends.connections.multiplexer import Multiplexer
from holdfast.backends.zookeeper.connection import SessionConnection
from holdfast.backends.zookeeper.connector import ServerRotation
from holdfast.backends.zookeeper.ops import Sync
from holdfast.backends.zookeeper.session import SessionState
from holdfast.backends.zookeeper.timing import IDLE_S

STEPS_COUNT = 20


class UnreadConnection:
    """Something has come, which whoever receives has not taken in yet."""

    closed = False

    def __init__(self) -> None:
        self.written = b""

    def readable(self) -> bool:
        return True

    def read(self) -> bytes | None:
        return None

    def write(self, data: bytes) -> bool:
        self.written += data
        return True

    def close(self) -> None: ...

    def abandon(self) -> None: ...


class Event:
    def set(self) -> None: ...


def test_a_request_goes_out_while_another_flow_receives() -> None:
    now = 1000.0
    servers = ServerRotation([Endpoint("a", 2181)], "zookeeper://a")
    link = SessionConnection(servers, (), 10.0, 4.0, "/holdfast", b"", now)
    link.session.state = SessionState.UP
    connection = UnreadConnection()
    link._multiplexer = multiplexer = Multiplexer(connection, lambda data: None, lambda error: None)
    receiver = multiplexer._receive(now + 60.0)
    receiver.send(None)
    flow = link.call((Sync("/holdfast"),), now + 5.0)
    op: Any = flow.send(None)
    for _ in range(STEPS_COUNT):
        if isinstance(op, WaitEvent):
            break
        assert op in (NOW, NEW_EVENT)
        now += 2 * IDLE_S
        op = flow.send(now if op is NOW else Event())
    assert connection.written, "it waits for a flow that cannot run meanwhile"
    assert isinstance(op, WaitEvent)
