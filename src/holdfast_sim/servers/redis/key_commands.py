"""Commands about keys: strings, sorted sets, and what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .glob import matches
from .hash_value import HashValue
from .keyspace import KeyspaceEntry, SortedSet
from .line_value import LineValue
from .protocol import Double, ErrorReply, Reply, Status, double_text

if TYPE_CHECKING:
    from .server import RedisServer
    from .session import RedisSession

OK = Status("OK")
WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
SYNTAX = "ERR syntax error"
NOT_INTEGER = "ERR value is not an integer or out of range"
NOT_FLOAT = "ERR value is not a valid float"


def integer(word: bytes) -> int:
    try:
        return int(word)
    except ValueError:
        raise ErrorReply(NOT_INTEGER) from None


def _entry(server: RedisServer, session: RedisSession, key: bytes) -> KeyspaceEntry | None:
    return server.keyspace.get((session.database, key))


def get(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    entry = _entry(server, session, words[1])
    return None if entry is None else text_of(entry)


def text_of(entry: KeyspaceEntry) -> bytes:
    """A string. What a line looks like is the programs' own business: one says as much as that it is there."""
    if isinstance(entry.value, dict | HashValue) or (isinstance(entry.value, LineValue) and entry.value.hashed):
        raise ErrorReply(WRONG_TYPE)
    return b"\x99" if isinstance(entry.value, LineValue) else entry.value


def set_(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    options = [word.upper() for word in words[3:]]
    keep = only_new = only_old = tell = False
    span: tuple[bytes, bytes] | None = None
    at = 0
    while at < len(options):
        option = options[at]
        if option in (b"PX", b"EX") and at + 1 < len(options) and span is None and not keep:
            span = (option, options[at + 1])
            at += 1
        elif option == b"NX" and not only_old:
            only_new = True
        elif option == b"XX" and not only_new:
            only_old = True
        elif option == b"GET":
            tell = True
        elif option == b"KEEPTTL" and span is None:
            keep = True
        else:
            raise ErrorReply(SYNTAX)
        at += 1
    expires_ms = None if span is None else server.keyspace.now_ms + _span_ms(*span)
    place = (session.database, words[1])
    entry = server.keyspace.get(place)
    before = text_of(entry) if tell and entry is not None else None
    if (only_new and entry is not None) or (only_old and entry is None):
        return before
    server.keyspace.put(place, words[2], entry.expires_ms if keep and entry is not None else expires_ms)
    return before if tell else OK


def _span_ms(unit: bytes, word: bytes) -> int:
    span = integer(word)
    if span <= 0:
        raise ErrorReply("ERR invalid expire time in 'set' command")
    return span if unit == b"PX" else span * 1000


def delete(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    return sum(server.keyspace.delete((session.database, key)) for key in words[1:])


def exists(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    return sum(_entry(server, session, key) is not None for key in words[1:])


def type_(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    entry = _entry(server, session, words[1])
    value = None if entry is None else entry.value
    if isinstance(value, HashValue) or (isinstance(value, LineValue) and value.hashed):
        return Status("hash")
    return Status("none" if entry is None else "zset" if isinstance(entry.value, dict) else "string")


def pttl(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    entry = _entry(server, session, words[1])
    if entry is None:
        return -2
    return -1 if entry.expires_ms is None else max(0, entry.expires_ms - server.keyspace.now_ms)


def pexpire(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    options = {word.upper() for word in words[3:]}
    for word in words[3:]:
        if word.upper() not in (b"NX", b"XX", b"GT", b"LT"):
            raise ErrorReply(f"ERR Unsupported option {word.decode('latin-1')}")
    if b"NX" in options and len(options) > 1:
        raise ErrorReply("ERR NX and XX, GT or LT options at the same time are not compatible")
    if {b"GT", b"LT"} <= options:
        raise ErrorReply("ERR GT and LT options at the same time are not compatible")
    span = integer(words[2])
    entry = _entry(server, session, words[1])
    if entry is None or not _may_expire(options, entry.expires_ms, server.keyspace.now_ms + span):
        return 0
    place = (session.database, words[1])
    if span <= 0:
        server.keyspace.delete(place)
    else:
        server.keyspace.put(place, entry.value, server.keyspace.now_ms + span)
    return 1


def _may_expire(options: set[bytes], before: int | None, after: int) -> bool:
    if (b"NX" in options and before is not None) or (b"XX" in options and before is None):
        return False
    if b"GT" in options:
        return before is not None and after > before
    return b"LT" not in options or before is None or after < before


def flush_all(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    for place in list(server.keyspace.entries):
        server.keyspace.delete(place)
    return OK


def db_size(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    return sum(1 for _ in server.keyspace.keys(session.database))


def scan(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    """All in one step: a cursor is a promise about what was there all the time, which this keeps."""
    if not words[1].isdigit():
        raise ErrorReply("ERR invalid cursor")
    pattern = b"*"
    if len(words) % 2:
        raise ErrorReply(SYNTAX)
    for at in range(2, len(words), 2):
        option = words[at].upper()
        if option == b"MATCH":
            pattern = words[at + 1]
        elif option == b"COUNT":
            if integer(words[at + 1]) < 1:
                raise ErrorReply(SYNTAX)
        elif option != b"TYPE":
            raise ErrorReply(SYNTAX)
    return [b"0", [key for key in server.keyspace.keys(session.database) if matches(pattern, key)]]


# Sorted sets


def sorted_set(server: RedisServer, session: RedisSession, key: bytes) -> tuple[SortedSet, int | None]:
    """A copy that may be changed, and its expiry."""
    entry = _entry(server, session, key)
    if entry is None:
        return {}, None
    if not isinstance(entry.value, dict):
        raise ErrorReply(WRONG_TYPE)
    return dict(entry.value), entry.expires_ms


def save(server: RedisServer, session: RedisSession, key: bytes, members: SortedSet, expires_ms: int | None) -> None:
    if members:
        server.keyspace.put((session.database, key), members, expires_ms)
    else:
        server.keyspace.delete((session.database, key))


def ordered(members: SortedSet) -> list[bytes]:
    return sorted(members, key=lambda member: (members[member], member))


def _score(word: bytes) -> float:
    try:
        return float(word)
    except ValueError:
        raise ErrorReply(NOT_FLOAT) from None


def zadd(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    at, flags = 2, set()
    while at < len(words) and words[at].upper() in (b"GT", b"CH", b"NX", b"XX", b"LT"):
        flags.add(words[at].upper())
        at += 1
    pairs = words[at:]
    if not pairs or len(pairs) % 2:
        raise ErrorReply(SYNTAX)
    scores = [_score(word) for word in pairs[::2]]
    members, expires_ms = sorted_set(server, session, words[1])
    before, added = dict(members), 0
    for score, member in zip(scores, pairs[1::2], strict=True):
        old = members.get(member)
        if old is None and b"XX" not in flags:
            members[member] = score
            added += 1
        elif old is not None and b"NX" not in flags and not (b"GT" in flags and score <= old):
            members[member] = score
    changed = sum(before.get(member) != score for member, score in members.items())
    if changed:
        save(server, session, words[1], members, expires_ms)
    return changed if b"CH" in flags else added


def zrange(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    if len(words) > 4:
        raise ErrorReply(SYNTAX)
    first, last = integer(words[2]), integer(words[3])
    members = ordered(sorted_set(server, session, words[1])[0])
    count = len(members)
    first = max(0, first + count if first < 0 else first)
    last = last + count if last < 0 else last
    return list(members[first : last + 1])


def zrem(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    members, expires_ms = sorted_set(server, session, words[1])
    removed = sum(members.pop(member, None) is not None for member in words[2:])
    if removed:
        save(server, session, words[1], members, expires_ms)
    return removed


def zremrangebyscore(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    low, high = _bound(words[2]), _bound(words[3])
    members, expires_ms = sorted_set(server, session, words[1])
    over = [
        member
        for member, score in members.items()
        if (score > low[0] or (score == low[0] and not low[1]))
        and (score < high[0] or (score == high[0] and not high[1]))
    ]
    for member in over:
        del members[member]
    if over:
        save(server, session, words[1], members, expires_ms)
    return len(over)


def _bound(word: bytes) -> tuple[float, bool]:
    """A score, and whether it is itself out of the range."""
    try:
        return float(word.removeprefix(b"(")), word.startswith(b"(")
    except ValueError:
        raise ErrorReply("ERR min or max is not a float") from None


def zscore(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    score = sorted_set(server, session, words[1])[0].get(words[2])
    if score is None:
        return None
    return Double(score) if session.version == 3 else double_text(score)


HANDLERS = {
    "dbsize": db_size,
    "del": delete,
    "exists": exists,
    "flushall": flush_all,
    "get": get,
    "pexpire": pexpire,
    "pttl": pttl,
    "scan": scan,
    "set": set_,
    "type": type_,
    "unlink": delete,
    "zadd": zadd,
    "zrange": zrange,
    "zrem": zrem,
    "zremrangebyscore": zremrangebyscore,
    "zscore": zscore,
}
