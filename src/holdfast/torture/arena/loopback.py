"""Free ports on the loopback interface, and waiting for somebody to listen there."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable

SPEAKERS = 100
"""So many ports are spoken for at a time: by then a server listens at those before them, or nobody will."""

_given: set[int] = set()
_speakers: deque[int] = deque()
"""The descriptors that speak for the last ports."""
_mutex = threading.Lock()


def free_port() -> int:
    """A port that nobody listens on, and that is given to nobody else, in this process or another.

    Below 32768, where Linux takes no ports for outgoing connections from: so it stays free until it is used. Between
    processes it is spoken for by a datagram socket of the same number, which ends with the process and is in no
    server's way.
    """
    with _mutex:
        for port in range(_first(), 32000):
            if port not in _given and (speaker := _speaker(port)) is not None:
                _given.add(port)
                _speakers.append(speaker)
                if len(_speakers) > SPEAKERS:
                    os.close(_speakers.popleft())
                return port
    raise OSError("no free loopback port between 20000 and 32000")


def _first() -> int:
    """Two runs at the same time begin at different places."""
    return 20000 + os.getpid() * 37 % 10000


def _speaker(port: int) -> int | None:
    """The descriptor that speaks for a port, if it is free."""
    speaker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        with socket.socket() as probe:
            speaker.bind(("127.0.0.1", port))
            probe.bind(("127.0.0.1", port))
    except OSError:
        speaker.close()
        return None
    return speaker.detach()


def eventually(condition: Callable[[], bool], within: float, pause: float = 0.02) -> bool:
    """Whether a condition became true in time; it is looked at again and again."""
    end = time.monotonic() + within
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True
