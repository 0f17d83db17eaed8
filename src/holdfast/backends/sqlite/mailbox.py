"""Wake-ups between the processes of one machine: a datagram to the waiter's own socket.

1. A promotion is committed before its datagram is sent, so a waiter that is woken finds it true.
2. The datagram carries the owner and its token: the waiter holds the lock on receipt, without a look at the file.
   Sockets lie in a folder that only this user can enter, so nobody else can send one.
3. A socket that refuses or is missing belongs to a waiter that is gone: the sender takes it out of the line at
   once. A datagram that is lost otherwise costs the time until the waiter's next look.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import socket
import tempfile
from pathlib import Path

from ..line import Push

AVAILABLE = hasattr(socket, "AF_UNIX")
MAX_PATH = 100
"""Shorter than the system's limit for a socket's path (104 to 108 bytes)."""
MOST_LINKS = 32
"""Links that a postman keeps, each a descriptor."""

_numbers = itertools.count(1)


def folder_for(path: Path) -> Path:
    """The folder of a lock file's sockets: beside it, or in the temporary folder if that path is too long."""
    beside = Path(f"{path}-wake")
    if len(os.fsencode(beside)) + 24 > MAX_PATH:
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        beside = Path(tempfile.gettempdir()) / f"holdfast-{os.getuid()}-{digest}"
    beside.mkdir(mode=0o700, exist_ok=True)
    return beside


class Mailbox:
    """A socket of its own for one waiter at a time; `users` counts the claims that it serves."""

    users = 0

    @classmethod
    def beside(cls, path: Path, blocking: bool = True) -> Mailbox:
        """A new box in the folder of a lock file."""
        return cls(folder_for(path), blocking)

    def __init__(self, folder: Path, blocking: bool = True) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.path = str(folder / f"{os.getpid()}.{next(_numbers)}.{os.urandom(3).hex()}")
        self._socket.bind(self.path)
        self._socket.setblocking(blocking)
        self._timeout: float | None = None

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self, timeout: float | None = None) -> tuple[str, Push] | None:
        """The next message, or None if there is none in time."""
        try:
            if timeout is not None and timeout != self._timeout:  # seldom: looks are mostly due after the same time
                self._timeout = timeout
                self._socket.settimeout(max(timeout, 0.0001))
            owner, token = self._socket.recv(256).decode("ascii").split(" ")
            return owner, Push(int(token))
        except (OSError, ValueError):  # none in time; or closed under our hands: the next request will say so
            return None

    def disown(self) -> None:
        """In a forked child: the socket and its path are the parent's."""
        self._socket.close()

    def close(self) -> None:
        self._socket.close()
        try:
            os.unlink(self.path)
        except OSError:
            pass  # the folder is gone, and the socket with it


class Postman:
    """Sends wake-ups. A link to each of the last boxes spares the system the search for the socket's path."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._links: dict[str, socket.socket] = {}

    def send(self, address: str, owner: str, token: int) -> bool:
        """False if nobody is there any more."""
        if not address:
            return True
        message = f"{owner} {token}".encode("ascii")
        try:
            if (link := self._links.get(address)) is not None:
                link.send(message)
            else:
                self._socket.sendto(message, address)
                self._link(address)
        except (ConnectionRefusedError, FileNotFoundError):
            self._unlink(address)
            try:
                os.unlink(address)
            except OSError:
                pass  # somebody else has swept it away
            return False
        except OSError:
            return True  # its buffer is full, or worse: it will look by itself
        return True

    def _link(self, address: str) -> None:
        """For the next message to this box."""
        if len(self._links) == MOST_LINKS:
            self._unlink(next(iter(self._links)))
        try:
            link = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        except OSError:
            return  # no descriptors left: the path is found as well
        try:
            link.setblocking(False)
            link.connect(address)
        except OSError:
            link.close()
        else:
            self._links[address] = link

    def _unlink(self, address: str) -> None:
        if (link := self._links.pop(address, None)) is not None:
            link.close()

    def close(self) -> None:
        self._socket.close()
        for address in list(self._links):
            self._unlink(address)
