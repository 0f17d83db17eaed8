"""The mark of a file, in a sidecar `<path>.fence`, under the kernel's lock (flock) on it.

1. The sidecar is the lock's identity and the fence's memory: it is written in place and never unlinked. A
   lock file that is unlinked on release has two inodes and two holders.
2. If a foreign hand unlinked it all the same, a lock won on the dead inode is not taken for one: the path is
   looked up again.
3. The lock is freed by the kernel when its process dies, however it dies. A paused process keeps it.
4. The record is one line of fixed length, far below a sector, with a check sum: it is the old one, the new
   one, or an error that names the file. An empty sidecar is one that has never been claimed.
5. Each section opens the sidecar anew, so that threads exclude each other as processes do.
"""

from __future__ import annotations

import errno
import os
import re
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ...errors import BackendUnavailable, Misconfigured

_RECORD = re.compile(rb"holdfast fence (?P<mark>[0-9]{20}) (?P<sum>[0-9a-f]{8})\n")
_LONGEST_NAP_S = 0.02


@dataclass(frozen=True, slots=True)
class Sidecar:
    """An open sidecar whose lock is ours until the section ends."""

    path: str
    descriptor: int
    durable: bool

    def mark(self) -> int | None:
        """The highest token that has claimed the file; None if none has."""
        data = os.pread(self.descriptor, 4096, 0)
        if not data:
            return None
        found = _RECORD.fullmatch(data)
        if found is None or _record(int(found["mark"])) != data:
            raise Misconfigured(
                f"the sidecar {self.path!r} is damaged: nobody can tell who may write; nothing was changed. "
                "Restore it, or remove it once no process with an old token is left: the next claim makes "
                "a new one"
            )
        return int(found["mark"])

    def write(self, mark: int) -> None:
        """Set the mark, in place."""
        record = _record(mark)
        if os.pwrite(self.descriptor, record, 0) != len(record):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        if self.durable:
            os.fsync(self.descriptor)


def _record(mark: int) -> bytes:
    text = b"holdfast fence %020d" % mark
    return b"%s %08x\n" % (text, zlib.crc32(text))


@contextmanager
def locked(path: str, *, create: bool, timeout: float | None, durable: bool) -> Iterator[Sidecar]:
    """The sidecar at `path`, locked. FileNotFoundError if there is none and it is not to be created."""
    from fcntl import LOCK_UN, flock

    until = None if timeout is None else time.monotonic() + timeout
    while True:
        flags = os.O_RDWR | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
        descriptor = os.open(path, flags, 0o666)
        try:
            _wait(path, descriptor, until)
            try:
                if _still_at(path, descriptor):
                    yield Sidecar(path, descriptor, durable)
                    return
            finally:
                flock(descriptor, LOCK_UN)  # closing is not enough if another thread forked a child meanwhile
        finally:
            os.close(descriptor)


def _wait(path: str, descriptor: int, until: float | None) -> None:
    """Take the lock: by waiting in the kernel, or by asking again and again until a deadline."""
    from fcntl import LOCK_EX, LOCK_NB, flock

    nap = 0.0005
    while True:
        try:
            return flock(descriptor, LOCK_EX if until is None else LOCK_EX | LOCK_NB)
        except BlockingIOError as error:
            left = (until or 0.0) - time.monotonic()
            if left <= 0:
                raise BackendUnavailable(
                    f"the lock on {path!r} was not free in time; nothing was changed. Another claim or write "
                    "has not come to its end: if its process is paused, wake or kill it "
                    f"(fuser {path!r} names it); else try again"
                ) from error
            nap = min(nap * 2, _LONGEST_NAP_S)
            time.sleep(min(nap, left))
        except OSError as error:
            raise Misconfigured(
                f"the file system of {path!r} does not lock files ({error.strerror}); "
                "keep fenced files on one that does"
            ) from error


def _still_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False
