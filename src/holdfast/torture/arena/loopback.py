"""Free ports on the loopback interface, and waiting for somebody to listen there."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable

_given: dict[int, int] = {}
"""Ports, and the descriptors that speak for them."""
_mutex = threading.Lock()


def free_port() -> int:
    """A port that nobody listens on, and that is given to nobody else, in this process or another.

    Below 32768, where Linux takes no ports for outgoing connections from: so it stays free until it is used. Between
    processes it is spoken for by a datagram socket of the same number, which ends with the process and is in no
    server's way.
    """
    with _mutex:
        for port in range(_first(), 32000):
            if port not in _given and (claim := _spoken_for(port)) is not None:
                _given[port] = claim
                return port
    raise OSError("no free loopback port between 20000 and 32000")


def _first() -> int:
    """Two runs at the same time begin at different places."""
    return 20000 + os.getpid() * 37 % 10000


def _spoken_for(port: int) -> int | None:
    """The descriptor that speaks for a port, if it is free."""
    claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        with socket.socket() as probe:
            claim.bind(("127.0.0.1", port))
            probe.bind(("127.0.0.1", port))
    except OSError:
        claim.close()
        return None
    return claim.detach()


def eventually(condition: Callable[[], bool], within: float, pause: float = 0.02) -> bool:
    """Whether a condition became true in time; it is looked at again and again."""
    end = time.monotonic() + within
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True
