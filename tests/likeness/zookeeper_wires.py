"""Connections of a play: to a real server, and to the model."""

from __future__ import annotations

import socket
from typing import Protocol

from holdfast_sim.servers.model import Server, Session
from holdfast_sim.servers.zookeeper.records import Op
from tests.likeness.play import Recorder
from tests.likeness.zookeeper_steps import PING_XID, frame_of

REMIND_S, REMINDERS_COUNT = 3.0, 10


class Wire(Protocol):
    reminders: int
    """Pings that nobody asked for."""

    def send(self, data: bytes) -> None: ...

    def receive(self) -> bytes:
        """Some more; nothing once the server has ended the connection."""
        ...

    def close(self) -> None: ...


class RealWire:
    """A real server has been seen to leave a sync unanswered, once in many thousands, while nothing else was asked of
    it. After a while it is reminded by a ping, whose answer does not count."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), REMIND_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reminders = 0

    def send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except ConnectionError:
            pass  # `receive` tells

    def receive(self) -> bytes:
        for _ in range(REMINDERS_COUNT):
            try:
                return self._socket.recv(1 << 16)
            except ConnectionError:
                return b""
            except TimeoutError:
                self.reminders += 1
                self.send(frame_of((PING_XID, Op.PING, b"")))
        raise AssertionError("the real server does not answer")

    def close(self) -> None:
        self._socket.close()


class ModelWire:
    reminders = 0

    def __init__(self, server: Server) -> None:
        self._output = Recorder()
        self._session: Session = server.accept(self._output)

    def send(self, data: bytes) -> None:
        if not self._output.ended:
            self._session.receive(data)

    def receive(self) -> bytes:
        data = bytes(self._output.data)
        self._output.data.clear()
        assert data or self._output.ended, "the model does not answer"
        return data

    def close(self) -> None:
        if not self._output.ended:
            self._output.ended = True
            self._session.closed()


class NoWire:
    """Of a client that is not connected."""

    reminders = 0

    def send(self, data: bytes) -> None: ...

    def receive(self) -> bytes:
        return b""

    def close(self) -> None: ...
