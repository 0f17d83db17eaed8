"""Fenced nodes: every write is one `multi` with the check that nobody newer has claimed them.

1. The mark is a node beside the fenced one, with `.fence` at the end of its path; its data is the highest token. It is
   persistent, and stays for as long as the data may be written: who deletes it lets stale holders in again.
2. A claim writes the mark in the version that it has read. That version is what each later write checks: whoever claims
   with a newer token moves it on.
3. What is read through the claimed node after that stays true until a newer holder claims: a session that has seen the
   mark sees all writes before it. A read is checked too, so that a stale holder learns of it then.
4. Who writes the node around the fence is not stopped by it.
5. A refusal is kept after it was found, by requests of its own: a `multi` writes all or nothing (`refusal_node`).
"""

from __future__ import annotations

from typing import Any

from ..._core.pickling import unpicklable
from ...errors import FenceRejected, Misconfigured
from ..clients import FENCE_ELSEWHERE, check_client
from ..holder import Holder, token_of
from ..refusal import owner_of, refusal_now
from ..rejections import rejected
from .refusal_node import keep_refusal
from .requests import means, raise_failed, read

KIND = "zookeeper"
MAX_TRIES_COUNT = 100
"""How often a claim meets another one that was quicker, before it gives up."""


class ZooKeeperFence:
    """A fence in front of nodes, through a client of kazoo (`kazoo.client.KazooClient`).

    fence = ZooKeeperFence(client)
    order = fence.claim("/orders/7", lease)     # refused, if a newer holder has claimed it
    paid = int(order.get() or b"0")
    order.set(b"%d" % (paid + 100))             # refused, if one has since
    """

    def __init__(self, client: Any) -> None:
        check_client(client, "ZooKeeperFence", "a started kazoo.client.KazooClient", "get", "create", "transaction")
        self._client = client

    __reduce__ = unpicklable(FENCE_ELSEWHERE)

    def claim(self, path: str, lease: Holder) -> FencedNode:
        """Raise the mark of the node to the lease's token, or raise `FenceRejected` if it is beyond."""
        token, owner, mark_path = token_of(lease), owner_of(lease), mark_of(path)
        for _ in range(MAX_TRIES_COUNT):
            found = read(self._client, mark_path)
            try:
                if found is None:
                    self._client.create(mark_path, b"%d" % token, makepath=True)
                    return FencedNode(self._client, path, token, 0, owner)
                mark, version = int(found[0]), found[1].version
                if token < mark:
                    raise refused(self._client, path, token, mark, owner)
                if token > mark:
                    version = self._client.set(mark_path, b"%d" % token, version).version
                return FencedNode(self._client, path, token, version, owner)
            except Exception as error:
                if not means(error, "NodeExistsError", "BadVersionError", "NoNodeError"):
                    raise  # somebody else claims in this very moment: look again
        raise Misconfigured(f"{path!r} is claimed by so many at once that no claim comes through; use one lock for it")

    def mark(self, path: str) -> int | None:
        """The highest token that has claimed the node; None if none has."""
        found = read(self._client, mark_of(path))
        return None if found is None else int(found[0])


class FencedNode:
    """A claimed node. Everything done through it is refused as soon as a newer holder has claimed it."""

    def __init__(self, client: Any, path: str, token: int, version: int, owner: str = "") -> None:
        self._client = client
        self._owner = owner
        self._version = version
        self.path = path
        self.token = token

    __reduce__ = unpicklable(FENCE_ELSEWHERE)

    @property
    def condition(self) -> tuple[str, int]:
        """The check to add to a `multi` of your own, as (path, version)."""
        return mark_of(self.path), self._version

    def get(self) -> bytes | None:
        """The data; None if the node is not there."""
        found = read(self._client, self.path)
        mark = read(self._client, mark_of(self.path))
        if mark is None or mark[1].version != self._version:
            raise self._refusal(mark)
        return None if found is None else found[0]

    def set(self, data: bytes) -> None:
        """Write the data; the node is made if it is not there."""
        transaction = self._client.transaction()
        if self._client.exists(self.path) is None:
            transaction.create(self.path, data)
        else:
            transaction.set_data(self.path, data)
        self.commit(transaction)

    def delete(self) -> bool:
        """False if it was not there."""
        if self._client.exists(self.path) is None:
            self.get()
            return False
        transaction = self._client.transaction()
        transaction.delete(self.path)
        self.commit(transaction)
        return True

    def commit(self, transaction: Any) -> list[Any]:
        """A transaction of your own, on any nodes, in one step with the check. Answers with its results."""
        mark_path, version = self.condition
        transaction.check(mark_path, version)
        results: list[Any] = transaction.commit()
        if means(results[-1], "BadVersionError", "NoNodeError"):
            raise self._refusal(read(self._client, mark_path))
        raise_failed(results)
        return results[:-1]

    def _refusal(self, mark: Any) -> Exception:
        return refused(self._client, self.path, self.token, None if mark is None else int(mark[0]), self._owner)


def refused(client: Any, path: str, token: int, mark: int | None, owner: str) -> FenceRejected:
    """Keep the refusal, count it, log it; the caller raises what it gets."""
    keep_refusal(KIND, client, path, refusal_now(token, mark, owner))
    return rejected(KIND, path, token, mark)


def mark_of(path: str) -> str:
    if not isinstance(path, str) or not path.startswith("/") or path == "/" or path.endswith("/"):
        raise Misconfigured(f"a fenced node has a path such as /orders/7, not {path!r}")
    if path.encode(errors="replace") != path.encode(errors="surrogatepass"):  # it ends kazoo's connection for good
        raise Misconfigured(f"the path {path!r} is not valid Unicode (a lone surrogate); use plain text")
    return f"{path}.fence"
