"""A key of etcd. Its version is the revision of its last write, which never comes back: there is no A, B, A.

1. Transactions are those of etcd's JSON gateway, as `holdfast.fenced.etcd` has them, and go through a function of the
   user's that carries one out.
2. A write whose reply is lost is sent once more, with the same revision to compare (`resend`).
3. The etcd lease of a key stays as it is.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from ...errors import Misconfigured, Missing, VersionConflict
from ...fenced.etcd.programs import KIND, Txn, claimed, claiming, denial, done, encode, fenced
from ...fenced.refusal import may_keep, not_kept
from ..codecs import ValueCodec, decoded, encoded
from ..resend import send_twice
from ..update import Step, Versioned

T = TypeVar("T")
WHAT = "the etcd key"
TRANSACT = "a function that carries out a transaction, such as fenced.etcd.gateway(…)"
_REFUSALS = frozenset(range(400, 500)) - {408, 499}
"""HTTP codes of the gateway that mean: etcd has looked at it, and did nothing."""


class KeyResource(Generic[T]):
    """One key."""

    def __init__(self, key: bytes, codec: ValueCodec[T]) -> None:
        self._key, self._codec = key, codec
        self._name = key.decode(errors="replace")
        self._where = f"{WHAT} {self._name!r}"
        self._claimed: int | None = None

    def claim(self, token: int) -> Step[None]:
        """Raise the mark of the key to the token, unless this register has done so already."""
        if token != self._claimed:
            reply = yield from self._transact_kept(lambda owner: claiming(self._key, token, owner))
            claimed(reply, self._key, token)
            self._claimed = token

    def read(self) -> Step[Versioned[T]]:
        get = {"request_range": {"key": encode(self._key)}}
        reply = yield from _transact({"compare": [], "success": [get], "failure": []})
        kvs = reply["responses"][0]["response_range"].get("kvs")
        if not kvs:
            raise Missing(WHAT, self._name)
        data = b64decode(kvs[0].get("value", ""))
        return Versioned(decoded(self._codec, data, self._where), int(kvs[0]["mod_revision"]))

    def write(self, value: T, version: Hashable, token: int | None) -> Step[Versioned[T]]:
        put = {"key": encode(self._key), "value": encode(encoded(self._codec, value, self._where))}
        if version is None:
            compare = {"target": "CREATE", "create_revision": "0"}
        elif isinstance(version, int) and not isinstance(version, bool) and version > 0:
            compare = {"target": "MOD", "mod_revision": str(version)}
        else:
            raise Misconfigured(f"the version of {self._where} is the revision that read() gave, not {version!r}")
        operation = {"request_put": put if version is None else {**put, "ignore_lease": True}}
        condition = {"key": encode(self._key), "result": "EQUAL", **compare}
        revision = yield from send_twice(lambda: self._send(operation, condition, token), refused, self._where)
        if revision is None:
            raise VersionConflict(WHAT, self._name, version)
        return Versioned(value, revision)

    def _send(self, operation: Txn, condition: Txn, token: int | None) -> Step[int | None]:
        """The revision of the write; None if another was there."""
        if token is None:
            reply = yield from _transact({"compare": [condition], "success": [operation], "failure": []})
        else:
            reply = yield from self._transact_kept(
                lambda owner: fenced(self._key, token, owner, [operation], [condition])
            )
            done(reply, self._key, token)
        return int(reply["header"]["revision"]) if reply.get("succeeded") else None

    def _transact_kept(self, make: Callable[[str | None], Txn]) -> Step[Txn]:
        """As the fence does it (`send_kept`): what cannot be kept at the fence for lack of rights is done without."""
        if not may_keep(KIND):
            return (yield from _transact(make(None)))
        try:
            return (yield from _transact(make("")))
        except Exception as error:
            if (denied := denial(error)) is None:
                raise
        reply = yield from _transact(make(None))
        not_kept(KIND, self._name, denied, for_good=True)
        return reply


def _transact(txn: Txn) -> Step[Txn]:
    reply = yield txn
    if not isinstance(reply, dict):
        raise Misconfigured(
            f"EtcdKey's function answered a transaction with {type(reply).__qualname__}, not with a dict"
        )
    return reply


def refused(error: Exception) -> bool:
    """Whether an error means that nothing was done."""
    return getattr(error, "code", None) in _REFUSALS
