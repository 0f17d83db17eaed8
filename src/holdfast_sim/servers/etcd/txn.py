"""Carrying out requests that change keys.

1. All comparisons of a transaction, of those inside it too, are made before anything is done.
2. A comparison over a range is true if it is true of every key there; of none, if it would be true of a key that was
   never written. An absent value compares to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from . import errors
from .fields import Json, present
from .leases import Lessor
from .requests import (
    CREATE,
    EQUAL,
    GREATER,
    LEASE,
    LESS,
    MOD,
    NOT_EQUAL,
    VALUE,
    VERSION,
    Compare,
    DeleteRequest,
    Op,
    PutRequest,
    RangeRequest,
    TxnRequest,
)
from .store import KeyValue, Store


def put(store: Store, lessor: Lessor, request: PutRequest) -> Json:
    check_put(store, lessor, request)
    old = store.get(request.key)
    value, lease = request.value, request.lease
    if old is not None:
        value = old.value if request.ignore_value else value
        lease = old.lease if request.ignore_lease else lease
    store.put(request.key, value, lease)
    lessor.attach(request.key, old.lease if old else 0, lease)
    return {"prev_kv": old.shown()} if old is not None and request.prev_kv else {}


def check_put(store: Store, lessor: Lessor, request: PutRequest) -> None:
    if (request.ignore_value or request.ignore_lease) and store.get(request.key) is None:
        raise errors.KEY_NOT_FOUND
    if request.lease:
        lessor.get(request.lease)


def delete(store: Store, lessor: Lessor, request: DeleteRequest) -> Json:
    gone = store.delete(request.span)
    for kv in gone:
        lessor.attach(kv.key, kv.lease, 0)
    return present(deleted=len(gone), prev_kvs=[kv.shown() for kv in gone] if request.prev_kv else [])


Path = list[bool]
"""Which way each transaction goes, the outer one first."""


def carry_out(store: Store, lessor: Lessor, request: TxnRequest) -> Json:
    path = _compare_all(store, request)
    _check(store, lessor, request, iter(path))
    return _apply(store, lessor, request, iter(path))


def _ops(request: TxnRequest, succeeded: bool) -> tuple[Op, ...]:
    return request.success if succeeded else request.failure


def _compare_all(store: Store, request: TxnRequest) -> Path:
    path = [all(_holds(store, compare) for compare in request.compare)]
    for op in _ops(request, path[0]):
        if isinstance(op, TxnRequest):
            path += _compare_all(store, op)
    return path


def _holds(store: Store, compare: Compare) -> bool:
    kvs = store.at(compare.span, 0)
    if not kvs:
        return compare.target != VALUE and _is_true(compare, KeyValue(b""))
    return all(_is_true(compare, kv) for kv in kvs)


def _is_true(compare: Compare, kv: KeyValue) -> bool:
    if compare.target == VALUE:
        order = (kv.value > compare.value) - (kv.value < compare.value)
    else:
        numbers = {VERSION: kv.version, CREATE: kv.created, MOD: kv.modified, LEASE: kv.lease}
        order = numbers.get(compare.target, 0) - compare.number
    return {EQUAL: order == 0, NOT_EQUAL: order != 0, GREATER: order > 0, LESS: order < 0}.get(compare.result, True)


def _check(store: Store, lessor: Lessor, request: TxnRequest, path: Iterator[bool]) -> None:
    """Refuse it as a whole, before anything is done: for what is put first, then for what is read."""
    ops = list(_chosen(request, path))
    for op in ops:
        if isinstance(op, PutRequest):
            check_put(store, lessor, op)
    for op in ops:
        if isinstance(op, RangeRequest):
            store.check_revision(op.revision)


def _chosen(request: TxnRequest, path: Iterator[bool]) -> Iterator[Op]:
    for op in _ops(request, next(path)):
        if isinstance(op, TxnRequest):
            yield from _chosen(op, path)
        else:
            yield op


def _apply(store: Store, lessor: Lessor, request: TxnRequest, path: Iterator[bool]) -> Json:
    succeeded = next(path)
    replies: list[Json] = []
    for op in _ops(request, succeeded):
        match op:
            case PutRequest():
                done = put(store, lessor, op)
                replies.append({"response_put": {"header": {"revision": str(store.current)}, **done}})
            case DeleteRequest():
                done = delete(store, lessor, op)
                replies.append({"response_delete_range": {"header": {"revision": str(store.current)}, **done}})
            case RangeRequest():
                found = store.range(op)
                replies.append({"response_range": {"header": {"revision": str(found.revision)}, **found.shown()}})
            case TxnRequest():
                replies.append({"response_txn": {"header": {}, **_apply(store, lessor, op, path)}})
            case None:
                raise AssertionError("refused before")
    return present(succeeded=succeeded, responses=replies)
