"""The requests of etcd's key-value and lease services, and what etcd refuses of them before it does anything."""

from __future__ import annotations

from dataclasses import dataclass

from . import errors
from .fields import Fields

SORT_ORDERS = ("NONE", "ASCEND", "DESCEND")
SORT_TARGETS = ("KEY", "VERSION", "CREATE", "MOD", "VALUE")
RESULTS = ("EQUAL", "GREATER", "LESS", "NOT_EQUAL")
TARGETS = ("VERSION", "CREATE", "MOD", "VALUE", "LEASE")
EQUAL, GREATER, LESS, NOT_EQUAL = range(4)
VERSION, CREATE, MOD, VALUE, LEASE = range(5)
MAX_OPS_COUNT = 128


@dataclass(frozen=True, slots=True)
class Span:
    """A key, or the keys from `key` to before `end`; an `end` of one zero byte: all from `key` on."""

    key: bytes
    end: bytes

    def __contains__(self, key: bytes) -> bool:
        if not self.end:
            return key == self.key
        return self.key <= key and (self.end == b"\0" or key < self.end)


@dataclass(frozen=True, slots=True)
class RangeRequest:
    span: Span
    limit: int = 0
    revision: int = 0
    sort_order: int = 0
    sort_target: int = 0
    serializable: bool = False
    keys_only: bool = False
    count_only: bool = False
    min_mod: int = 0
    max_mod: int = 0
    min_create: int = 0
    max_create: int = 0

    @property
    def bounded(self) -> bool:
        return bool(self.min_mod or self.max_mod or self.min_create or self.max_create)


@dataclass(frozen=True, slots=True)
class PutRequest:
    key: bytes
    value: bytes = b""
    lease: int = 0
    prev_kv: bool = False
    ignore_value: bool = False
    ignore_lease: bool = False


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    span: Span
    prev_kv: bool = False


@dataclass(frozen=True, slots=True)
class Compare:
    span: Span
    target: int
    result: int
    number: int
    value: bytes


@dataclass(frozen=True, slots=True)
class TxnRequest:
    compare: tuple[Compare, ...]
    success: tuple[Op, ...]
    failure: tuple[Op, ...]

    @property
    def read_only(self) -> bool:
        return all(isinstance(op, RangeRequest) for op in self.success + self.failure)

    @property
    def serializable(self) -> bool:
        return all(isinstance(op, RangeRequest) and op.serializable for op in self.success + self.failure)

    @property
    def puts(self) -> bool:
        """Whether etcd takes it for one that needs space: it does not look into transactions within it."""
        return any(isinstance(op, PutRequest) for op in self.success + self.failure)


Op = RangeRequest | PutRequest | DeleteRequest | TxnRequest | None
"""None: an op that names nothing to do."""


def _span(fields: Fields) -> Span:
    return Span(fields.data("key"), fields.data("range_end"))


def range_request(fields: Fields) -> RangeRequest:
    return RangeRequest(
        _span(fields),
        fields.number("limit"),
        fields.number("revision"),
        fields.choice("sort_order", SORT_ORDERS),
        fields.choice("sort_target", SORT_TARGETS),
        fields.flag("serializable"),
        fields.flag("keys_only"),
        fields.flag("count_only"),
        fields.number("min_mod_revision"),
        fields.number("max_mod_revision"),
        fields.number("min_create_revision"),
        fields.number("max_create_revision"),
    )


def put_request(fields: Fields) -> PutRequest:
    return PutRequest(
        fields.data("key"),
        fields.data("value"),
        fields.number("lease"),
        fields.flag("prev_kv"),
        fields.flag("ignore_value"),
        fields.flag("ignore_lease"),
    )


def delete_request(fields: Fields) -> DeleteRequest:
    return DeleteRequest(_span(fields), fields.flag("prev_kv"))


_NUMBERS = {VERSION: "version", CREATE: "create_revision", MOD: "mod_revision", LEASE: "lease"}


def _compare(fields: Fields) -> Compare:
    target = fields.choice("target", TARGETS)
    number = fields.number(_NUMBERS[target]) if target in _NUMBERS else 0
    return Compare(_span(fields), target, fields.choice("result", RESULTS), number, fields.data("value"))


def _op(fields: Fields) -> Op:
    if "request_range" in fields:
        return range_request(fields.message("request_range"))
    if "request_put" in fields:
        return put_request(fields.message("request_put"))
    if "request_delete_range" in fields:
        return delete_request(fields.message("request_delete_range"))
    if "request_txn" in fields:
        return txn_request(fields.message("request_txn"))
    return None


def txn_request(fields: Fields) -> TxnRequest:
    return TxnRequest(
        tuple(_compare(each) for each in fields.messages("compare")),
        tuple(_op(each) for each in fields.messages("success")),
        tuple(_op(each) for each in fields.messages("failure")),
    )


def check(op: Op, most: int = MAX_OPS_COUNT) -> None:
    """Refuse what is malformed."""
    match op:
        case None:
            raise errors.KEY_NOT_FOUND
        case RangeRequest(span) | DeleteRequest(span):
            if not span.key:
                raise errors.EMPTY_KEY
        case PutRequest():
            if not op.key:
                raise errors.EMPTY_KEY
            if op.ignore_value and op.value:
                raise errors.VALUE_PROVIDED
            if op.ignore_lease and op.lease:
                raise errors.LEASE_PROVIDED
        case TxnRequest():
            count = max(len(op.compare), len(op.success), len(op.failure))
            if count > most:
                raise errors.TOO_MANY_OPS
            if not all(each.span.key for each in op.compare):
                raise errors.EMPTY_KEY
            for each in op.success + op.failure:
                check(each, most - count)


def check_overlaps(ops: tuple[Op, ...]) -> tuple[set[bytes], list[Span]]:
    """Refuse a transaction that writes a key twice. What is put and what is deleted, on any path."""
    deleted = [op.span for op in ops if isinstance(op, DeleteRequest)]
    put: set[bytes] = set()
    for op in ops:
        if isinstance(op, TxnRequest):
            put_if, deleted_if = check_overlaps(op.success)
            put_else, deleted_else = check_overlaps(op.failure)
            for key in put_if:
                _once(key, put, deleted)
            for key in put_else:
                _once(key, put - put_if, deleted)
            put |= put_if | put_else
            deleted += deleted_if + deleted_else
    for op in ops:
        if isinstance(op, PutRequest):
            _once(op.key, put, deleted)
            put.add(op.key)
    return put, deleted


def _once(key: bytes, put: set[bytes], deleted: list[Span]) -> None:
    if key in put or any(key in span for span in deleted):
        raise errors.DUPLICATE_KEY
