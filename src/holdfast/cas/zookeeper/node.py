"""A node of ZooKeeper. Its version is ZooKeeper's own count of writes to it.

1. The count begins anew when a node is deleted and made again: do not delete a node that is changed by this, give it a
   value that means "none". (Nothing here deletes.)
2. A read may be behind. Then the write meets a newer version; whoever was told so, in its own session, reads what is at
   least as new.
3. A write whose reply is lost is sent once more (`resend`).
4. kazoo blocks. Each request is a call that a thread carries out; for asyncio it is a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from ...errors import Misconfigured, Missing, VersionConflict
from ...fenced.zookeeper.fence import FencedNode, ZooKeeperFence, mark_of
from ...fenced.zookeeper.fence import refused as fence_refused
from ...fenced.zookeeper.requests import means, raise_failed, read
from ..codecs import ValueCodec, decoded, encoded
from ..resend import send_twice
from ..update import Step, Versioned

T = TypeVar("T")
WHAT = "the node"
_QUICKER = ("NoNodeError", "BadVersionError", "NodeExistsError")
_LOST = (
    *("ConnectionLoss", "ConnectionDropped", "OperationTimeoutError", "RequestTimeoutError", "SessionExpiredError"),
    *("SessionMovedError", "KazooTimeoutError", "TimeoutError", "OSError", "SystemZookeeperError"),
)
"""Errors that leave open whether a write was carried out; all others mean that it was not."""


class NodeResource(Generic[T]):
    """One node."""

    def __init__(self, client: Any, path: str, codec: ValueCodec[T]) -> None:
        mark_of(path)
        self._client, self._path, self._codec = client, path, codec
        self._where = f"{WHAT} {path!r}"
        self._fence = ZooKeeperFence(client)
        self._claimed: FencedNode | None = None

    def claim(self, token: int) -> Step[None]:
        yield from self._claim(token)

    def _claim(self, token: int) -> Step[FencedNode]:
        """Raise the mark of the node to the token, unless the last claim of this register has done so.

        A write asks once more: another thread may have claimed with another token since, and its claim is not ours.
        """
        claimed = self._claimed
        if claimed is None or claimed.token != token:
            made = yield lambda: self._fence.claim(self._path, token)
            assert isinstance(made, FencedNode)
            self._claimed = claimed = made
        return claimed

    def read(self) -> Step[Versioned[T]]:
        found: Any = yield lambda: read(self._client, self._path)
        if found is None:
            raise Missing(WHAT, self._path)
        return Versioned(decoded(self._codec, found[0], self._where), found[1].version)

    def write(self, value: T, version: Hashable, token: int | None) -> Step[Versioned[T]]:
        if version is not None and (not isinstance(version, int) or isinstance(version, bool) or version < 0):
            raise Misconfigured(f"the version of {self._where} is the count that read() gave, not {version!r}")
        data = encoded(self._codec, value, self._where)
        claimed = None if token is None else (yield from self._claim(token))

        def call() -> int | None:
            return self._write_alone(data, version) if claimed is None else self._write_claimed(data, version, claimed)

        written = yield from send_twice(lambda: _ask(call), refused, self._where)
        if written is None:
            raise VersionConflict(WHAT, self._path, version)
        return Versioned(value, written)

    def _write_alone(self, data: bytes, version: int | None) -> int | None:
        """The version that the node has now; None if somebody else was quicker."""
        try:
            if version is None:
                self._client.create(self._path, data, makepath=True)
                return 0
            return int(self._client.set(self._path, data, version).version)
        except Exception as error:
            if means(error, *_QUICKER):
                return None
            raise

    def _write_claimed(self, data: bytes, version: int | None, claimed: FencedNode) -> int | None:
        """The same in one step with the check of the mark, which comes first."""
        transaction = self._client.transaction()
        transaction.check(*claimed.condition)
        if version is None:
            transaction.create(self._path, data)
        else:
            transaction.set_data(self._path, data, version)
        checked, written = transaction.commit()
        if means(checked, "BadVersionError", "NoNodeError"):
            mark = self._fence.mark(self._path)
            raise fence_refused(self._client, self._path, claimed.token, mark, "")
        if means(written, *_QUICKER):
            return None
        raise_failed((checked, written))
        return 0 if version is None else int(written.version)


def _ask(call: Callable[[], int | None]) -> Step[int | None]:
    answer = yield call
    assert answer is None or isinstance(answer, int)
    return answer


def refused(error: Exception) -> bool:
    """Whether an error means that nothing was done."""
    return not means(error, *_LOST)
