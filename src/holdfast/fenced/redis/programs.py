"""What is sent to the server, and what its replies mean; the same for both kinds of client.

A client may send a command again by itself when its connection breaks. A read may be done twice; whatever else is sent
leaves a receipt for `KEPT_MS` by which a copy is known (`once.lua`).
"""

from __future__ import annotations

import os
from binascii import crc_hqx
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import count
from typing import Any, NamedTuple, TypeAlias

from ...errors import FenceRejected, Misconfigured, OutcomeUnknown
from ..refusal import not_kept
from ..rejections import rejected

KIND = "redis"
COMMAND = "return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))"
"""The work of one command on the key: its name, and what follows the key."""

KEPT_MS = 60_000
TRUSTED_S = KEPT_MS / 1000 / 2
"""How old a receipt may be when a reply is read: the clocks of client and server may differ in speed, not by that."""
LONGEST_REPLY_BYTES = 65_536
"""Longer ones are not kept for a copy."""
READS = frozenset({
    "BITCOUNT", "EXISTS", "GET", "GETBIT", "GETRANGE", "HEXISTS", "HGET", "HGETALL", "HKEYS", "HLEN", "HMGET",
    "HSTRLEN", "HVALS", "LINDEX", "LLEN", "LRANGE", "PTTL", "SCARD", "SISMEMBER", "SMEMBERS", "STRLEN", "TTL", "TYPE",
    "XLEN", "XRANGE", "ZCARD", "ZCOUNT", "ZRANGE", "ZRANGEBYSCORE", "ZRANK", "ZSCORE",
})  # fmt: skip
"""Commands on a key that change nothing."""

Word: TypeAlias = str | bytes | int | float


class FencedCall(NamedTuple):
    """A program, with its keys and words."""

    text: str
    keys: list[str]
    words: list[Word]
    repeatable: bool
    """To do it twice is to do it once."""


@cache
def refusing() -> str:
    """The function that keeps a refusal, for every program that refuses."""
    return (files(__package__) / "refusal.lua").read_text("utf-8")


@cache
def claiming() -> str:
    return refusing() + (files(__package__) / "claim.lua").read_text("utf-8")


@cache
def fenced(work: str) -> str:
    """A program of the user's under the fence."""
    return refusing() + (files(__package__) / "fenced.lua").read_text("utf-8").replace("--WORK--", work)


@cache
def once(work: str) -> str:
    """The same, carried out once however often it is sent."""
    return (files(__package__) / "once.lua").read_text("utf-8").replace("--FENCED--", fenced(work))


def call_of(key: str, token: int, owner: str, work: str, keys: Sequence[str], args: Sequence[Word]) -> FencedCall:
    """A program of the user's under the fence of a key."""
    all_keys, words = [mark_key(key), key, *keys], [digits(token), owner, *args]
    if work == COMMAND and str(args[0]).upper() in READS:
        return FencedCall(fenced(work), all_keys, words, True)
    receipt = f"{key_beside('receipt', key)}/{os.urandom(8).hex()}"
    return FencedCall(once(work), [receipt, *all_keys], [KEPT_MS, LONGEST_REPLY_BYTES, *words], False)


def digits(token: int) -> str:
    return f"{token:019d}"


def check_key(key: str) -> str:
    if not isinstance(key, str) or not key:
        raise Misconfigured(f"a fence stands at a key, which is a str that is not empty, not {key!r}")
    return key


def mark_key(key: str) -> str:
    """Where the mark of a key is kept: a key of its own, in the same slot of a cluster.

    >>> mark_key("orders/7")
    'holdfast/fence/{orders/7}/orders/7'
    >>> mark_key("{orders}/7")
    'holdfast/fence/{orders}/{orders}/7'
    """
    return key_beside("fence", key)


def key_beside(room: str, key: str) -> str:
    """A key of ours that belongs to a key of the user's, in the same slot of a cluster."""
    tag = _tag(key)
    if "}" in tag:  # braces around it would end too early: any other text of that slot will do
        slot = _slot(tag)
        tag = next(text for text in map(str, count()) if _slot(text) == slot)
    return f"holdfast/{room}/{{{tag}}}/{key}"


def _tag(key: str) -> str:
    """What decides about the slot: the text in the first braces, if there is any."""
    _, opened, rest = key.partition("{")
    inside, closed, _ = rest.partition("}")
    return inside if opened and closed and inside else key


def _slot(text: str) -> int:
    return crc_hqx(text.encode(), 0) % 16384


def claimed(reply: Any, key: str, token: int) -> None:
    """Raise `FenceRejected` unless the claim was accepted."""
    mark, kept = reply
    if int(mark) != token:
        raise _refused(mark, kept, key, token)


def done(reply: Sequence[Any], key: str, token: int) -> Any:
    """What the work answered, or raise `FenceRejected`."""
    if reply[0] == 1:
        return reply[1] if len(reply) > 1 else None
    if reply[0] == 2:
        raise OutcomeUnknown(f"what was done to {key!r} was done once, but its reply was lost: read it and decide")
    raise _refused(reply[1], reply[2], key, token)


def answered(call: FencedCall, reply: Sequence[Any], seconds: float, key: str, token: int) -> Any:
    """The same of a call that took so long."""
    if not call.repeatable and seconds > TRUSTED_S:
        raise OutcomeUnknown(
            f"the reply about {key!r} took {seconds:.0f} s: if the client has sent the command again when its receipt "
            "was gone, it was done twice, or refused after it was done. Read the key and decide"
        )
    return done(reply, key, token)


def _refused(mark: Any, kept: int, key: str, token: int) -> FenceRejected:
    if not kept:
        not_kept(KIND, key, "the server refuses to write it (its memory is full, or this user has no right to its key)")
    return rejected(KIND, key, token, int(mark) if mark else None)


def pairs(reply: Any) -> dict[Any, Any]:
    """A hash as a dict, from either protocol."""
    return dict(reply) if isinstance(reply, Mapping) else dict(zip(reply[::2], reply[1::2], strict=True))
