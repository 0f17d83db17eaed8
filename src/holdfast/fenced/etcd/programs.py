"""Transactions of the fence, in the words of etcd's JSON gateway, and what their replies mean; the same for both kinds.

The mark is a key of its own, `holdfast/fence/KEY`: a token in 19 digits, so that etcd, which compares bytes, compares
numbers. A comparison with a key that is not there is false: nobody has claimed, and nobody's write passes.

A refusal is kept by the branch that refuses, in `holdfast/refusals/KEY/SLOT`, one of `LAST_COUNT` slots by the token: a
transaction cannot count, but etcd counts how often a key was put (its `version`), and so the versions of all slots
together are how often it has refused. It cannot copy the mark into the value either: who reads a refusal reads the mark
at its revision.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any, TypeAlias

from ...errors import Misconfigured
from ..refusal import LAST_COUNT, refusal_now
from ..rejections import rejected

KIND = "etcd"
Key: TypeAlias = str | bytes
Txn: TypeAlias = dict[str, Any]
REFUSALS = b"holdfast/refusals/"


def encode(word: Key) -> str:
    return b64encode(word.encode() if isinstance(word, str) else word).decode()


def check_key(key: Key) -> bytes:
    if not isinstance(key, (str, bytes)) or not key:
        raise Misconfigured(f"a fence stands at a key, which is text or bytes and not empty, not {key!r}")
    return key.encode() if isinstance(key, str) else key


def mark_key(key: bytes) -> str:
    """Where the mark of a key is kept, in base64.

    >>> b64decode(mark_key(b"orders/7"))
    b'holdfast/fence/orders/7'
    """
    return encode(b"holdfast/fence/" + key)


def refusal_key(key: bytes, token: int) -> bytes:
    """Where a refusal of the token is kept.

    >>> refusal_key(b"orders/7", 33)
    b'holdfast/refusals/orders/7/1'
    """
    return REFUSALS + key + b"/%d" % (token % LAST_COUNT)


def _keep(key: bytes, token: int, owner: str | None) -> list[Txn]:
    if owner is None:
        return []
    line = refusal_now(token, None, owner).line()
    return [{"request_put": {"key": encode(refusal_key(key, token)), "value": encode(line)}}]


def digits(token: int) -> str:
    return encode(f"{token:019d}")


def claiming(key: bytes, token: int, owner: str | None) -> Txn:
    """Raise the mark, unless it is beyond; then that is kept, unless the owner is None."""
    mark = mark_key(key)
    return {
        "compare": [{"key": mark, "target": "VALUE", "result": "GREATER", "value": digits(token)}],
        "success": [{"request_range": {"key": mark}}, *_keep(key, token, owner)],
        "failure": [{"request_put": {"key": mark, "value": digits(token)}}],
    }


def standing(key: bytes, token: int) -> dict[str, str]:
    """What is true for as long as nobody newer has claimed."""
    return {"key": mark_key(key), "target": "VALUE", "result": "EQUAL", "value": digits(token)}


def fenced(key: bytes, token: int, owner: str | None, operations: Iterable[Txn], conditions: Iterable[Txn] = ()) -> Txn:
    """The user's operations under the fence. A condition of the user's that is not met is no refusal."""
    compare, look = [standing(key, token), *conditions], {"request_range": {"key": mark_key(key)}}
    refuse: list[Txn] = [look, *_keep(key, token, owner)]
    if len(compare) > 1 and len(refuse) > 1:
        refuse = [{"request_txn": {"compare": compare[:1], "success": [look], "failure": refuse}}]
    return {"compare": compare, "success": list(operations), "failure": refuse}


def denial(error: Exception) -> str | None:
    """What an error says if the user has no right to a key of the transaction: perhaps to that of refusals alone."""
    if getattr(error, "code", None) != 403 and "permission denied" not in str(error).lower():
        return None
    if isinstance(error, OSError) and callable(close := getattr(error, "close", None)):
        close()  # an answer of HTTP that nobody will read
    return str(error)


def reading(key: bytes) -> Txn:
    return {"compare": [], "success": [{"request_range": {"key": mark_key(key)}}], "failure": []}


def mark_in(reply: Txn) -> int | None:
    """The mark that a reply shows."""
    first = reply["responses"][0]
    if "response_txn" in first:
        return mark_in(first["response_txn"])
    kvs = first["response_range"].get("kvs")
    return int(b64decode(kvs[0]["value"])) if kvs else None


def claimed(reply: Txn, key: bytes, token: int) -> None:
    """Raise `FenceRejected` if a newer holder has claimed."""
    if reply.get("succeeded"):
        raise rejected(KIND, key.decode(errors="replace"), token, mark_in(reply))


def done(reply: Txn, key: bytes, token: int) -> list[Any] | None:
    """What the operations answered; None if a condition of the user's own was not met; or raise `FenceRejected`."""
    if reply.get("succeeded"):
        return list(reply.get("responses", ()))
    mark = mark_in(reply)
    if mark == token:
        return None
    raise rejected(KIND, key.decode(errors="replace"), token, mark)


def value_in(responses: list[Any] | None) -> bytes | None:
    kvs = responses[0]["response_range"].get("kvs") if responses else None
    return b64decode(kvs[0].get("value", "")) if kvs else None


def count_in(responses: list[Any] | None) -> int:
    return int(responses[0]["response_delete_range"].get("deleted", 0)) if responses else 0
