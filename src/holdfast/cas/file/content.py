"""A file. Its version is a digest of its content (SHA-256); it is replaced as a whole.

1. Comparing and replacing are one section under the kernel's lock on the sidecar (`holdfast.fenced.file`), so writers
   that come this way, or through a `FencedFile`, exclude each other, in all processes of the machine.
2. Whoever writes the file in another way is noticed, unless it writes in the moment between comparing and replacing.
3. A content that was changed and changed back passes, as with a string of Redis: `update` writes what depends on the
   content alone.
4. Files block. Each request is a call that a thread carries out; for asyncio it is a thread of its own.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from hashlib import sha256
from typing import Generic, TypeVar

from ...errors import Misconfigured, Missing, VersionConflict
from ...fenced.file.fence import FencedFile, replace_if
from ..codecs import ValueCodec, decoded, encoded
from ..update import Step, Versioned

T = TypeVar("T")
WHAT = "the file"


class FileResource(Generic[T]):
    """One file."""

    def __init__(
        self, path: str | os.PathLike[str], codec: ValueCodec[T], *, durable: bool, lock_timeout: float | None
    ) -> None:
        self._file = FencedFile(path, timeout=lock_timeout, durable=durable)
        self._codec = codec
        self._where = f"{WHAT} {self._file.path!r}"
        self._claimed: int | None = None

    def claim(self, token: int) -> Step[None]:
        """Raise the mark of the file to the token, unless this register has done so already."""
        if token != self._claimed:
            yield lambda: self._file.claim(token)
            self._claimed = token

    def read(self) -> Step[Versioned[T]]:
        data = yield self._content
        if data is None:
            raise Missing(WHAT, self._file.path)
        assert isinstance(data, bytes)
        return Versioned(decoded(self._codec, data, self._where), _digest(data))

    def write(self, value: T, version: Hashable, token: int | None) -> Step[Versioned[T]]:
        if version is not None and (not isinstance(version, str) or len(version) != 64):
            raise Misconfigured(f"the version of {self._where} is the digest that read() gave, not {version!r}")
        data = encoded(self._codec, value, self._where)

        def check() -> None:
            content = self._content()
            if (None if content is None else _digest(content)) != version:
                raise VersionConflict(WHAT, self._file.path, version)

        yield lambda: replace_if(self._file, token, data, check)
        return Versioned(value, _digest(data))

    def _content(self) -> bytes | None:
        try:
            with open(self._file.path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
