"""Many flows on one connection, by hand: what comes is handed out while the connection lives."""

from __future__ import annotations

import pytest

from holdfast._core.flow import Receive
from holdfast.backends.connections.multiplexer import Multiplexer


class StillConnection:
    """Nothing comes on it but what the test says."""

    closed = False

    def readable(self) -> bool:
        return False

    def write(self, data: bytes) -> bool:
        return True

    def close(self) -> None:
        self.closed = True

    def abandon(self) -> None: ...


def test_what_was_received_when_another_flow_lost_the_connection_is_for_nobody() -> None:
    """The bytes are there, and before the flow goes on, another one has dropped the connection and its requests."""
    fed: list[bytes] = []
    lost: list[OSError] = []
    multiplexer = Multiplexer(StillConnection(), fed.append, lost.append)
    receiver = multiplexer._receive(1060.0)
    assert isinstance(receiver.send(None), Receive)
    multiplexer.lose(TimeoutError("the server did not answer in time"))
    with pytest.raises(StopIteration) as end:
        receiver.send(b"an answer to nobody")
    assert end.value.value is True, "whoever waits looks again, and sees that it is over"
    assert fed == []
    assert len(lost) == 1
