"""Whole versions of a file: readers see the old one or the new one, never a part of either.

1. The new version is written beside the old one, flushed, and moved over it (rename is atomic on POSIX).
2. Its name is fixed, because the caller holds the fence's lock: what a killed writer left behind is taken
   away by the next, and nothing piles up.
3. It inherits the permissions of the old version, and its owner where the system allows, before it has any content:
   until then only its writer can open it. Where the group cannot be kept, the new group gets what all others have.
   Hard links, ACLs and extended attributes stay with the old version.
"""

from __future__ import annotations

import os

from ...errors import OutcomeUnknown
from ..permissions import inherit

Data = bytes | bytearray | memoryview


def replace(path: str, beside: str, data: Data, *, durable: bool) -> None:
    """Make `data` the content of `path`, by way of a new file `beside` it."""
    try:
        _write(path, beside, data, durable)
        os.replace(beside, path)
    except BaseException:
        _remove(beside)
        raise
    if durable:
        try:
            sync_folder(path)
        except OSError as error:
            raise OutcomeUnknown(
                f"{path!r} was written, but whether it would survive a power failure is not known: {error}; "
                "see to the disk, then claim, read and decide"
            ) from error


def sync_folder(path: str) -> None:
    """Flush the folder of `path`: without that, a new name may be gone after a power failure."""
    descriptor = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(path: str, beside: str, data: Data, durable: bool) -> None:
    _remove(beside)  # of a writer that was killed; O_EXCL then makes sure that the inode is ours alone
    try:
        old = os.stat(path)
    except FileNotFoundError:
        old = None
    mode = 0o666 if old is None else 0o600
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as new:
        if old is not None:
            inherit(old, new.fileno())
        new.write(data)
        new.flush()
        if durable:
            os.fsync(new.fileno())


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
