"""What is said to etcd, in the words of its JSON gateway. Keys and values are base64 there, 64-bit numbers are text.

A request is a sequence of `Rpc`s that leave in one write and are carried out one after the other; its reply is the list
of their answers, each the decoded JSON or a `Rejected`. A `Post` is told in the background, and nobody waits for it.
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypedDict, cast

TXN = "/v3/kv/txn"
KEEP_ALIVE = "/v3/lease/keepalive"


@dataclass(slots=True)  # made for each request, never changed; freezing would cost more than making it
class Rpc:
    path: str
    body: str


@dataclass(slots=True)
class Post:
    """Something that may be told later, or never: nobody waits for it, not even for its making."""

    make: Callable[[], Rpc | None]
    """None: by now it does not matter any more."""


class Together(NamedTuple):
    """A transaction that may go together with others in one. Its reply is a list of one answer, as for one RPC."""

    compare: Sequence[str]
    success: Sequence[str]
    failure: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """etcd's no to one request, with its gRPC code."""

    code: int
    message: str

    @property
    def lease_is_gone(self) -> bool:
        return "lease not found" in self.message

    @property
    def lease_exists(self) -> bool:
        return "lease already exists" in self.message


class Header(TypedDict):
    cluster_id: str
    revision: str
    raft_term: str


class KeyValue(TypedDict, total=False):
    key: str
    value: str
    create_revision: str
    mod_revision: str
    lease: str


class RangeResponse(TypedDict, total=False):
    kvs: list[KeyValue]
    count: str


class OpResponse(TypedDict, total=False):
    """The answer to one operation of a transaction."""

    response_range: RangeResponse
    response_txn: NestedTxn


class NestedTxn(TypedDict, total=False):
    succeeded: bool
    responses: list[OpResponse]


class KeptAlive(TypedDict, total=False):
    header: Header
    TTL: str


class Answer(TypedDict, total=False):
    """All that we read of etcd's answers; what an answer has depends on its request, and zeros are left out."""

    header: Header
    succeeded: bool
    responses: list[OpResponse]
    result: KeptAlive
    TTL: str
    keys: list[str]
    kvs: list[KeyValue]
    token: str


@dataclass(frozen=True, slots=True)
class Patient:
    """RPCs of somebody who comes to wait: sent when it is their turn among all such of this client."""

    rpcs: Sequence[Rpc]
    timeout_s: float
    """From then on."""


Request: TypeAlias = Sequence[Rpc] | Post | Together | Patient
Replies: TypeAlias = list[Answer | Rejected]


def b64(text: str) -> str:
    return b2a_base64(text.encode(), newline=False).decode()


def unb64(text: str) -> str:
    return a2b_base64(text).decode()


def end_of(prefix: str) -> str:
    """The end of the range of all keys with this prefix. UTF-8 has no byte 0xff, so the last one can be raised."""
    data = bytearray(prefix.encode())
    data[-1] += 1
    return b2a_base64(data, newline=False).decode()


def until(end: str) -> str:
    """Of a request about the keys before `end`, and not about one key alone."""
    return f',"range_end":"{end}"' if end else ""


# Conditions: target 1 is CREATE, 2 is MOD; result 0 is EQUAL, 1 GREATER, 2 LESS. Over a range: true of every key in it.


def absent(key: str, end: str = "") -> str:
    return f'{{"key":"{key}"{until(end)},"target":1,"create_revision":0}}'


def exists(key: str) -> str:
    return f'{{"key":"{key}","target":1,"result":1,"create_revision":0}}'


def created_at(key: str, revision: int) -> str:
    return f'{{"key":"{key}","target":1,"create_revision":{revision}}}'


def changed_at(key: str, revision: int) -> str:
    return f'{{"key":"{key}","target":2,"mod_revision":{revision}}}'


def unchanged_since(key: str, end: str, revision: int) -> str:
    return f'{{"key":"{key}","range_end":"{end}","target":2,"result":2,"mod_revision":{revision + 1}}}'


def none_created_since(key: str, end: str, revision: int) -> str:
    return f'{{"key":"{key}","range_end":"{end}","target":1,"result":2,"create_revision":{revision + 1}}}'


# Operations


def put(key: str, value: str, lease: int) -> str:
    return f'{{"request_put":{{"key":"{key}","value":"{b64(value)}","lease":{lease}}}}}'


def point_to(key: str, target: str, lease: int) -> str:
    """Put the name of another key: a value in base64 is that key as we have it."""
    return f'{{"request_put":{{"key":"{key}","value":"{target}","lease":{lease}}}}}'


def delete(key: str) -> str:
    return f'{{"request_delete_range":{{"key":"{key}"}}}}'


def get(key: str, end: str = "") -> str:
    return f'{{"request_range":{{"key":"{key}"{until(end)}}}}}'


def version_of(key: str) -> str:
    """Its revisions, without its value."""
    return f'{{"request_range":{{"key":"{key}","keys_only":true}}}}'


def youngest(key: str, end: str, count: int, created_by: int = 0) -> str:
    """The keys of a range that were created last (by a revision, or by now)."""
    bound = f',"max_create_revision":{created_by}' if created_by else ""
    return (
        f'{{"request_range":{{"key":"{key}","range_end":"{end}","sort_order":2,"sort_target":2,'
        f'"limit":{count}{bound}}}}}'
    )


def older(key: str, end: str, created_by: int) -> str:
    """The keys of a range that were created by a revision."""
    return f'{{"request_range":{{"key":"{key}","range_end":"{end}","max_create_revision":{created_by}}}}}'


def inner(compare: Iterable[str], success: Iterable[str], failure: Iterable[str] = ()) -> str:
    return f'{{"request_txn":{_txn(compare, success, failure)}}}'


def txn(compare: Iterable[str], success: Iterable[str], failure: Iterable[str] = ()) -> Rpc:
    return Rpc(TXN, _txn(compare, success, failure))


def _txn(compare: Iterable[str], success: Iterable[str], failure: Iterable[str]) -> str:
    otherwise = f',"failure":[{",".join(failure)}]' if failure else ""
    return f'{{"compare":[{",".join(compare)}],"success":[{",".join(success)}]{otherwise}}}'


def together(requests: Sequence[Together]) -> Rpc:
    """All of these in one."""
    return txn(*requests[0]) if len(requests) == 1 else txn((), [inner(*each) for each in requests])


def replies_of(reply: Answer | Rejected, count: int) -> Replies:
    """The answer to each of so many."""
    if count == 1 or isinstance(reply, Rejected):
        return [reply] * count
    return [cast(Answer, each["response_txn"]) for each in reply["responses"]]


def grant_lease(lease: int, seconds: int) -> Rpc:
    return Rpc("/v3/lease/grant", f'{{"ID":{lease},"TTL":{seconds}}}')


def keep_alive(lease: int) -> Rpc:
    return Rpc(KEEP_ALIVE, f'{{"ID":{lease}}}')


def keys_of(lease: int) -> Rpc:
    return Rpc("/v3/lease/timetolive", f'{{"ID":{lease},"keys":true}}')


def time_to_live(lease: int) -> Rpc:
    return Rpc("/v3/lease/timetolive", f'{{"ID":{lease}}}')


def linearizable_read(key: str) -> Rpc:
    """A read that a majority confirms. What it reads is of no interest: see `session`, rule 6."""
    return Rpc("/v3/kv/range", f'{{"key":"{key}","count_only":true}}')


def revoke(lease: int) -> Rpc:
    return Rpc("/v3/lease/revoke", f'{{"ID":{lease}}}')


def authenticate(user: str, password: str) -> Rpc:
    return Rpc("/v3/auth/authenticate", json.dumps({"name": user, "password": password}))


def seconds_left(reply: Answer) -> int:
    """The TTL that a keep-alive was answered with; 0: there is no such lease."""
    result = reply.get("result", reply)
    return int(result.get("TTL", 0))


def term_of(reply: Answer) -> int:
    """The term of the last entry that the answering member had applied."""
    return int(reply.get("result", reply)["header"]["raft_term"])


def revision_of(reply: Answer) -> int:
    return int(reply["header"]["revision"])
