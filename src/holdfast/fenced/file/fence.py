"""The fence for a file: claim, read the version that the last accepted write left, replace it as a whole.

1. The claim and each write hold the kernel's lock on the sidecar. A write checks token == mark and replaces
   the file within one such section, so no claim fits between check and replacement.
2. Reading needs no lock. After the claim no older holder can write; if a newer one does, our next write is
   refused.
3. Readers that do not claim always see one whole version, perhaps not the last. They must not write.
4. The mark is raised before any data is written, so a crash between the two loses nothing: the mark only
   rises.
5. The fence knows a file by its path with all symbolic links resolved, once, when it is made. A second hard
   link is a second file.
6. A process that is paused inside such a section keeps the lock: others wait, up to `timeout`, and are told.
   If it is killed instead, the kernel frees the lock and the file is the version before or after, whole.
7. Tokens tell holders apart, not threads: two threads that share one lease share its claim.
8. A refusal is kept in a file of its own, `<path>.fence.refusals`, in the section in which it is found.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType

from ...errors import FenceRejected, Misconfigured
from ..holder import Holder, token_of
from ..refusal import owner_of, refusal_now
from ..refusal_store import SUFFIX, keep_beside
from ..rejections import rejected
from .replace import Data, replace, sync_folder
from .sidecar import locked

KIND = "file"
_SIDECAR = ".fence"
_BESIDE = ".fence.new"


class FencedFile:
    """A file that only the newest holder can change.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "counter.txt")
    >>> with FencedFile(path).claim(34) as file:                 # a lease, or its token
    ...     file.write_text(str(int(file.read_text() or "0") + 1))
    >>> path.read_text()
    '1'
    >>> FencedFile(path).claim(33)                               # doctest: +ELLIPSIS
    Traceback (most recent call last):
    holdfast.errors.FenceRejected: the fence at '...' refused token 33: token 34 has claimed it since; ...

    `timeout` bounds the wait for another claim or write to end (None: no bound). `durable=False` leaves out
    the flushes to disk: still safe when processes die, not when the power fails.
    """

    __slots__ = ("_durable", "_sidecar", "_timeout", "path")

    def __init__(self, path: str | os.PathLike[str], *, timeout: float | None = 10.0, durable: bool = True) -> None:
        if not isinstance(path, (str, os.PathLike)) or "\0" in str(path):
            raise Misconfigured(f"a fenced file is named by a str or a Path, not by {path!r:.80}")
        self.path = os.path.realpath(os.fspath(path))
        if self.path.endswith((_SIDECAR, _BESIDE, SUFFIX)):
            raise Misconfigured(f"{self.path!r} has the name of another file's fence; fence that file instead")
        if os.path.isdir(self.path):
            raise Misconfigured(f"{self.path!r} is a folder; a fence replaces one file as a whole: name the file")
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            raise Misconfigured(f"{self.path!r} is a device, a pipe or a socket; a fence replaces an ordinary file")
        if timeout is not None and (not isinstance(timeout, (int, float)) or not timeout >= 0):
            raise Misconfigured(f"timeout of {self.path!r} is {timeout!r}; give seconds from 0, or None for no bound")
        _demand_locks()
        self._sidecar = self.path + _SIDECAR
        self._timeout = timeout
        self._durable = durable

    def claim(self, lease: Holder) -> FileClaim:
        """Raise the file's mark to the lease's token, or raise `FenceRejected` if it is beyond. Then read."""
        token = token_of(lease)
        with locked(self._sidecar, create=True, timeout=self._timeout, durable=self._durable) as sidecar:
            mark = sidecar.mark()
            if mark is not None and mark > token:
                raise _refused(self.path, token, mark, owner_of(lease))
            if mark != token:
                sidecar.write(token)
            if mark is None and self._durable:
                sync_folder(self._sidecar)
        return FileClaim(self, token, owner_of(lease))

    def mark(self) -> int | None:
        """The highest token that has claimed the file; None if none has."""
        try:
            with locked(self._sidecar, create=False, timeout=self._timeout, durable=False) as sidecar:
                return sidecar.mark()
        except FileNotFoundError:
            return None


def replace_if(
    file: FencedFile, token: int | None, data: Data, check: Callable[[], None] = lambda: None, owner: str = ""
) -> None:
    """Replace the content in one section with the check of the token and with `check`, which raises to refuse.

    None for a token: the writer relies on its `check` alone (`holdfast.cas`).
    """
    try:
        with locked(file._sidecar, create=token is None, timeout=file._timeout, durable=False) as sidecar:
            mark = None if token is None else sidecar.mark()
            if mark == token:
                check()
                return replace(file.path, file.path + _BESIDE, data, durable=file._durable)
            assert token is not None
            raise _refused(file.path, token, mark, owner)
    except FileNotFoundError:
        if token is None or os.path.lexists(file._sidecar):
            raise
        # Somebody removed the sidecar: whether we are the newest is not known any more.
        raise _refused(file.path, token, None, owner) from None


def _refused(path: str, token: int, mark: int | None, owner: str) -> FenceRejected:
    keep_beside(KIND, path, path, refusal_now(token, mark, owner))
    return rejected(KIND, path, token, mark)


class FileClaim:
    """A file that a holder has claimed: its own until the `with` block ends or a newer holder claims."""

    __slots__ = ("_closed", "_file", "_owner", "token")

    def __init__(self, file: FencedFile, token: int, owner: str = "") -> None:
        self._file = file
        self._owner = owner
        self._closed = False
        self.token = token

    def read_bytes(self) -> bytes | None:
        """The whole content; None if there is no such file, which is not the same as an empty one."""
        self._demand_open()
        try:
            with open(self._file.path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def read_text(self, encoding: str = "utf-8") -> str | None:
        """The whole content as text, with line ends as they are; None if there is no such file."""
        data = self.read_bytes()
        return None if data is None else data.decode(encoding)

    def write_bytes(self, data: Data) -> None:
        """Replace the content as a whole, or raise `FenceRejected` if anyone newer has claimed."""
        self._demand_open()
        replace_if(self._file, self.token, data, owner=self._owner)

    def write_text(self, text: str, encoding: str = "utf-8") -> None:
        """Replace the content by text, with line ends as they are."""
        self.write_bytes(text.encode(encoding))

    def __enter__(self) -> FileClaim:
        self._demand_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True

    def __repr__(self) -> str:
        return f"<FileClaim {self._file.path!r} token={self.token}{' closed' if self._closed else ''}>"

    def _demand_open(self) -> None:
        if self._closed:
            raise Misconfigured(f"the claim on {self._file.path!r} ended with its `with` block; claim it again")


def _demand_locks() -> None:
    try:
        import fcntl  # noqa: F401  # looked for, not used
    except ImportError as error:
        raise Misconfigured(
            "a fence at a file needs flock, which this system (Windows?) does not have; "
            "keep the data in SQLite and use SQLiteFence"
        ) from error
