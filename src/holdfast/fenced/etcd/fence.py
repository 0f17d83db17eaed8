# Generated from src/holdfast/fenced/etcd/async_fence.py by `make generate`: change that file, not this one.
"""Fenced keys: every write is one transaction with the check that nobody newer has claimed them.

1. The mark is a key of its own, without a lease: it stays for as long as the data may be written.
2. `claim` raises the mark; what is read through the claimed key after that stays true until a newer holder claims.
3. Reads through the claimed key are checked too: a stale holder learns of it when it reads, not only when it writes.
4. Who writes the key around the fence is not stopped by it.
5. A refusal is kept in the transaction that refuses, in keys of its own.

A fence speaks through a function of the user's that carries out one transaction, given and answered in the JSON form
of etcd's gateway: `Etcd3Client.transaction` of etcd3gw is one, `gateway("http://host:2379")` makes one without any
package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..._core.pickling import unpicklable
from ..clients import FENCE_ELSEWHERE, check_client
from ..holder import Holder, token_of
from ..refusal import may_keep, not_kept, owner_of
from .programs import (
    KIND,
    Key,
    Txn,
    check_key,
    claimed,
    claiming,
    count_in,
    denial,
    done,
    encode,
    fenced,
    mark_in,
    reading,
    standing,
    value_in,
)

Transact = Callable[[Txn], Txn]

WANTED = 'a function that carries out a transaction, such as gateway("http://127.0.0.1:2379")'


class EtcdFence:
    """A fence in front of keys, through a function that blocks.

    fence = EtcdFence(gateway("http://127.0.0.1:2379"))
    order = fence.claim("orders/7", lease)      # refused, if a newer holder has claimed it
    paid = int(order.get() or 0)
    order.put(str(paid + 100))                  # refused, if one has since
    """

    def __init__(self, transact: Transact) -> None:
        check_client(transact, "EtcdFence", WANTED)
        self._transact = transact

    __reduce__ = unpicklable(FENCE_ELSEWHERE)

    def claim(self, key: Key, lease: Holder) -> FencedKey:
        """Raise the mark of `key` to the lease's token, or raise `FenceRejected` if it is beyond."""
        token, owner, name = token_of(lease), owner_of(lease), check_key(key)
        reply = send_kept(self._transact, name, owner, lambda keeper: claiming(name, token, keeper))
        claimed(reply, name, token)
        return FencedKey(self._transact, name, token, owner)

    def mark(self, key: Key) -> int | None:
        """The highest token that has claimed `key`; None if none has."""
        return mark_in(self._transact(reading(check_key(key))))


class FencedKey:
    """A claimed key. Everything done through it is refused as soon as a newer holder has claimed it."""

    def __init__(self, transact: Transact, key: bytes, token: int, owner: str = "") -> None:
        self._transact = transact
        self._owner = owner
        self.key = key
        self.token = token

    __reduce__ = unpicklable(FENCE_ELSEWHERE)

    @property
    def condition(self) -> dict[str, str]:
        """The compare to add to a transaction of your own: it goes through only while nobody newer has claimed."""
        return standing(self.key, self.token)

    def get(self) -> bytes | None:
        """The value; None if there is none."""
        return value_in(self.run([{"request_range": {"key": encode(self.key)}}]))

    def put(self, value: Key, *, lease: int = 0) -> None:
        """Set the value; with `lease` (of etcd) it ends with that lease, and the mark does not."""
        self.run([{"request_put": {"key": encode(self.key), "value": encode(value), "lease": str(lease)}}])

    def delete(self) -> bool:
        """Delete the key. False if it was not there."""
        return count_in(self.run([{"request_delete_range": {"key": encode(self.key)}}])) > 0

    def run(self, operations: Iterable[Txn], conditions: Iterable[Txn] = ()) -> list[Any] | None:
        """Operations of your own, on any keys, in one step with the check; None if a condition was not met."""
        asked, terms = list(operations), list(conditions)
        reply = send_kept(
            self._transact, self.key, self._owner, lambda owner: fenced(self.key, self.token, owner, asked, terms)
        )
        return done(reply, self.key, self.token)


def send_kept(transact: Transact, key: bytes, owner: str, make: Callable[[str | None], Txn]) -> Txn:
    """Send a transaction that keeps its refusal; without that, if the user has no right to where it is kept."""
    if may_keep(KIND):
        try:
            return transact(make(owner))
        except Exception as error:
            if (denied := denial(error)) is None:
                raise
        reply = transact(make(None))
        not_kept(KIND, key.decode(errors="replace"), denied, for_good=True)
        return reply
    return transact(make(None))
