"""Free ports on the loopback interface, and waiting for a condition."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable

RESERVED_PORT_COUNT = 100
"""How many ports are reserved at a time: by then a server listens on the earlier ones, or never will."""

_given: set[int] = set()
_reservations: deque[int] = deque()
"""The descriptors that reserve the last ports."""
_mutex = threading.Lock()


def free_port() -> int:
    """A port that nobody listens on, and that is given out once only, in this process and all others.

    It is below 32768, where Linux takes no ports for outgoing connections, so it stays free until it is used. A
    datagram socket of the same number reserves it against other processes; it ends with the process, and does not
    disturb a server.
    """
    with _mutex:
        for port in range(_first(), 32000):
            if port not in _given and (reservation := _reserve(port)) is not None:
                _given.add(port)
                _reservations.append(reservation)
                if len(_reservations) > RESERVED_PORT_COUNT:
                    os.close(_reservations.popleft())
                return port
    raise OSError("no free loopback port between 20000 and 32000")


def _first() -> int:
    """Two runs at the same time begin at different ports."""
    return 20000 + os.getpid() * 37 % 10000


def _reserve(port: int) -> int | None:
    """The descriptor that reserves a port; None if it is taken."""
    reservation = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        with socket.socket() as probe:
            reservation.bind(("127.0.0.1", port))
            probe.bind(("127.0.0.1", port))
    except OSError:
        reservation.close()
        return None
    return reservation.detach()


def eventually(condition: Callable[[], bool], within: float, pause: float = 0.02) -> bool:
    """Whether a condition became true in time; it is polled."""
    end = time.monotonic() + within
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True
