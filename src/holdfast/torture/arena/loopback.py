"""Free ports on the loopback interface, and waiting for somebody to listen there."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

_given: set[int] = set()
_mutex = threading.Lock()


def free_port() -> int:
    """A port that nobody listens on, and that was not given to anybody of this process before.

    Below 32768, where Linux takes no ports for outgoing connections from: so it stays free until it is used.
    """
    with _mutex:
        for port in range(_first(), 32000):
            if port not in _given and _is_free(port):
                _given.add(port)
                return port
    raise OSError("no free loopback port between 20000 and 32000")


def _first() -> int:
    """Two runs at the same time begin at different places."""
    import os

    return 20000 + os.getpid() * 37 % 10000


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def eventually(condition: Callable[[], bool], within: float, pause: float = 0.02) -> bool:
    """Whether a condition became true in time; it is looked at again and again."""
    end = time.monotonic() + within
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True
