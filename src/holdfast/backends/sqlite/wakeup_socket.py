"""Wake-ups between the processes of one machine: a datagram to the waiter's own socket.

1. A promotion is committed before its datagram is sent, so a waiter that is woken finds it true.
2. The datagram carries the owner and its token: the waiter holds the lock on receipt, without a look at the file.
   Sockets lie in a folder that only this user can enter, so nobody else can send one; a folder that somebody else
   made in our place (the temporary folder is everybody's) is not used.
3. A socket that is there and refuses belongs to a process that is gone: the sender takes its waiter out of the line,
   unless that has been heard of since. A socket that is missing proves nothing. Whatever is not delivered costs the
   time until the waiter's next look.
   It is left for a while, because others may wait behind the same socket; later it is swept away (`sweep`).
4. In the lock file a socket has a name, not a path: the same folder may be mounted elsewhere for somebody else.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import socket
import stat
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from ...model import Predecessor
from ..queue_backend import Push

AVAILABLE = hasattr(socket, "AF_UNIX")
MAX_PATH_BYTES = 100
"""Shorter than the system's limit for a socket's path (104 to 108 bytes)."""
MOST_LINKS_COUNT = 32
"""Links that a postman keeps, each a descriptor."""

SWEEP_EVERY, SWEEP_COUNT, SWEPT_AFTER_S = 32, 256, 3600.0
"""With one in so many new boxes so many old ones are looked at, once they are so old."""
TEMPORARY = str(Path(tempfile.gettempdir()) / "holdfast-")

_numbers = itertools.count(1)


def folders_for(path: Path) -> list[Path]:
    """Where the sockets of a lock file can be: beside it, or in the temporary folder where that path is too long."""
    file = os.stat(path)  # whatever path somebody else has for it
    digest = hashlib.sha256(f"{file.st_dev} {file.st_ino}".encode()).hexdigest()[:16]
    folders = [Path(f"{path}-wake"), Path(f"{TEMPORARY}{os.getuid()}-{digest}")]
    return folders if len(os.fsencode(folders[0])) + 24 <= MAX_PATH_BYTES else folders[1:]


def own_folder(path: Path) -> Path:
    """Where sockets of our own go. `PermissionError` if it is not a folder of this user's alone."""
    folder = folders_for(path)[0]
    folder.mkdir(mode=0o700, exist_ok=True)
    if not _is_own(folder):
        raise PermissionError(f"{folder} is not a folder that only this user can enter")
    return folder


def _is_own(folder: Path) -> bool:
    found = os.lstat(folder)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077


def sweep(folder: Path, older_than: float = SWEPT_AFTER_S) -> None:
    """Remove sockets that processes have left behind which were killed."""
    try:
        old = [entry.path for entry in os.scandir(folder) if time.time() - entry.stat().st_mtime > older_than]
        for path in old[:SWEEP_COUNT]:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
                try:
                    probe.connect(path)
                except ConnectionRefusedError:
                    os.unlink(path)
    except OSError:
        pass  # somebody else sweeps, or there are no descriptors left: another time


class WakeupSocket:
    """A socket of its own for one waiter at a time; `users` counts the claims that it serves."""

    users = 0

    @classmethod
    def beside(cls, path: Path, blocking: bool = True) -> WakeupSocket:
        """A new box in the folder of a lock file."""
        if random.random() * SWEEP_EVERY < 1:
            sweep(own_folder(path))
        try:
            return cls(own_folder(path), blocking)
        except FileNotFoundError:  # the last one to leave has removed it at this very moment
            return cls(own_folder(path), blocking)

    def __init__(self, folder: Path, blocking: bool = True) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.name = f"{os.getpid()}.{next(_numbers)}.{os.urandom(3).hex()}"
        """Where others send to: see rule 4."""
        self.path = str(folder / self.name)
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
            owner, token, *ended = self._socket.recv(256).decode("ascii").split(" ")
            after = Predecessor(int(ended[0]), ended[1], ended[2]) if ended else None
            return owner, Push(int(token), after)
        except (OSError, ValueError):  # none in time; or closed under our hands: the next request will say so
            return None

    def disown(self) -> None:
        """In a forked child: the socket and its path are the parent's."""
        self._socket.close()

    def close(self) -> None:
        """Whoever waits for a message is told that none will come."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # not everywhere without a peer; then the wait ends by itself
        self._socket.close()
        try:
            os.unlink(self.path)
            if (folder := os.path.dirname(self.path)).startswith(TEMPORARY):
                os.rmdir(folder)  # unless somebody else waits: beside no file, nobody would ever remove it
        except OSError:
            pass  # the folder is gone, or in use


class Notifier:
    """Sends wake-ups. A link to each of the last boxes spares the system the search for the socket's path."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = tuple(folders)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._links: dict[str, socket.socket] = {}

    def send(self, name: str, owner: str, token: int, after: Predecessor | None = None) -> bool:
        """False if whoever had this socket is certainly gone."""
        if not name:
            return True
        ended = "" if after is None else f" {after.token} {after.owner} {after.ended}"
        message = f"{owner} {token}{ended}".encode("ascii")
        try:
            if (link := self._links.get(name)) is not None:
                link.send(message)
            else:
                self._find(name, message)
        except ConnectionRefusedError:
            self._unlink(name)
            return False
        except OSError:
            pass  # its buffer is full, or it is out of reach from here: it will look by itself
        return True

    def _find(self, name: str, message: bytes) -> None:
        for folder in self._folders:
            address = str(folder / name)
            try:
                self._socket.sendto(message, address)
            except FileNotFoundError:
                continue
            except ConnectionRefusedError:
                if _is_own(folder):  # else anybody may have put it there
                    raise
                return
            self._link(name, address)
            return

    def _link(self, name: str, address: str) -> None:
        """For the next message to this box."""
        if len(self._links) == MOST_LINKS_COUNT:
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
            self._links[name] = link

    def _unlink(self, name: str) -> None:
        if (link := self._links.pop(name, None)) is not None:
            link.close()

    def close(self) -> None:
        self._socket.close()
        for name in list(self._links):
            self._unlink(name)
