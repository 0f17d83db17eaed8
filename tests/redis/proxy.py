"""A TCP proxy between a client and its server, that can lose replies, cut connections, or hold everything up."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Proxy:
    """Each connection has two threads, one for each way."""

    def __init__(self, port: int, seed: int = 7) -> None:
        self._target = port
        self._chance = random.Random(seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._flowing = threading.Event()
        self._flowing.set()
        self.port: int = self._listener.getsockname()[1]
        self.loss = 0.0
        """How likely a piece of reply is lost. What follows it on that connection is lost too, as TCP has it: the
        connection ends, or it stays open and silent."""
        self.lost = 0
        self.mute = False
        """New connections are accepted, and nobody ever answers on them."""
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def hold_up(self) -> None:
        """Nothing gets through, and nothing is lost."""
        self._flowing.clear()

    def let_flow(self) -> None:
        self._flowing.set()

    def cut(self) -> None:
        """Every connection ends at once."""
        for link in list(self._open):
            _shut(link)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self.mute:
                self._open.add(near)
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            self._open |= {near, far}
            for source, sink, lossy in ((near, far, False), (far, near, True)):
                threading.Thread(target=self._carry, args=(source, sink, lossy), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, lossy: bool) -> None:
        silent = False
        try:
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := source.recv(1 << 16):
                self._flowing.wait()
                if lossy and not silent and self._chance.random() < self.loss:
                    self.lost += 1
                    if self._chance.random() < 0.5:
                        break
                    silent = True
                if not silent:
                    sink.sendall(data)
        except OSError:
            pass  # the other side is gone
        for link in (source, sink):
            _shut(link)
            self._open.discard(link)

    def close(self) -> None:
        self._listener.close()
        self.let_flow()
        self.cut()


def _shut(link: socket.socket) -> None:
    try:
        link.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it was shut already
    link.close()


@contextmanager
def proxied(port: int) -> Iterator[Proxy]:
    proxy = Proxy(port)
    try:
        yield proxy
    finally:
        proxy.close()
