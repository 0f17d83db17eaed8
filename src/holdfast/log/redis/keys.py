"""The keys of a log, and the programs that work on them.

1. All keys of a log have the same hash tag: in a Redis Cluster they lie in one slot, on one server, because a program
   is atomic only there. Every program is told all of its keys, but that of a refusal (`fenced/redis/refusal.lua`).
2. `all` is a Redis Stream, an entry for each event, whose id is the event's position. `truncated` is the highest
   position that was removed.
3. A stream of events has a hash, in which `last` is its version and `oldest` its oldest event, `v:VERSION` tells the
   position of a version and `i:ID` the version of an event's id; and a hash of snapshots. A consumer has a hash of
   cursors, from its partitions to positions. (Small hashes are small; a Redis Stream takes 4 KiB from its first entry.)
4. The marks of fences are where `holdfast.fenced.RedisFence` has them, for the keys of streams and of cursors.
5. No key expires, and none may be evicted.
"""

from __future__ import annotations

from functools import cache, lru_cache
from hashlib import sha1
from importlib.resources import files
from typing import NamedTuple

from ...fenced.redis.programs import mark_key, refusing
from ..cursors import ConsumerPartition

PREFIX = "holdfast/log/{log}/"
ALL = PREFIX + "all"
TRUNCATED = PREFIX + "truncated"
NEED_SCAN = frozenset({"tail", "poll", "acknowledge", "oldest_of_log", "remove"})
FENCED = frozenset({"append", "poll", "acknowledge"})
"""Programs that refuse a stale token, and keep that they did."""


class LuaProgram(NamedTuple):
    """The text of a program, and the digest by which the server knows it."""

    text: str
    digest: str


@cache
def program(name: str) -> LuaProgram:
    folder = files(__package__) / "scripts"
    text = (folder / f"{name}.lua").read_text("utf-8")
    if name in NEED_SCAN:
        text = f"{(folder / 'scan.lua').read_text('utf-8')}\n{text}"
    if name in FENCED:
        text = refusing() + text
    return LuaProgram(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


def stream_key(stream: str) -> str:
    return f"{PREFIX}streams/{stream}"


def snapshots_key(stream: str) -> str:
    return f"{PREFIX}snapshots/{stream}"


def cursors_key(consumer: str) -> str:
    return f"{PREFIX}cursors/{consumer}"


@lru_cache(1024)
def append_keys(stream: str) -> tuple[str, ...]:
    key = stream_key(stream)
    return ALL, key, mark_key(key)


def consumer_keys(partition: ConsumerPartition) -> tuple[str, ...]:
    cursors = cursors_key(partition.consumer)
    return ALL, TRUNCATED, cursors, mark_key(f"{cursors}/{partition.part}/{partition.parts}")
