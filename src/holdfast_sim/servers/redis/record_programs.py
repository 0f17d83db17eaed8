"""What the programs of records (`backends/redis/scripts/*record*.lua`) do at a server, command by command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from .hash_value import HashValue
from .key_commands import WRONG_TYPE, sorted_set
from .keyspace import KeyspaceEntry
from .protocol import ErrorReply, Reply
from .script_run import Model, Run, refused_to_write

SLACK_MS = 60_000
SWAP_LOOK_EVERY, SWAP_LOOK_COUNT = 4, 12
LIST_LOOK_COUNT, LIST_SPARE_COUNT = 1000, 100
TOUCHED_CODE, NOT_TOUCHED_CODE, NOBODY_CAN_TELL_CODE = 1, 0, 2


def _entry(run: Run, key: bytes, by: str) -> tuple[KeyspaceEntry | None, Mapping[bytes, bytes]]:
    entry = run.entry(key, by=by)
    if entry is None:
        return None, {}
    if not isinstance(entry.value, HashValue):
        raise ErrorReply(WRONG_TYPE)
    return entry, entry.value.fields


def _hset(run: Run, key: bytes, **fields: bytes) -> None:
    entry, before = _entry(run, key, by="hset")
    after = {**before, **{name.encode(): value for name, value in fields.items()}}
    expires_ms = None if entry is None else entry.expires_ms
    run.server.keyspace.put((run.session.database, key), HashValue(after), expires_ms)


def _show(run: Run, key: bytes) -> list[Reply] | None:
    _, fields = _entry(run, key, by="hmget")
    if b"v" not in fields:
        return None
    return [int(fields[b"v"]), fields[b"o"], fields[b"d"], max(0, int(fields[b"a"]) - run.now_us)]


def _behind(run: Run, index: bytes, first: bytes, last: bytes, count: int) -> list[bytes]:
    """ZRANGE … BYLEX: of members that all have one score."""
    run.check("zrange", key=index)
    members = sorted(sorted_set(run.server, run.session, index)[0])

    def within(member: bytes) -> bool:
        above = first == b"-" or (member > first[1:] if first[:1] == b"(" else member >= first[1:])
        return above and (last == b"+" or member < last[1:])

    return [member for member in members if within(member)][:count]


def _exists(run: Run, key: bytes) -> bool:
    try:
        return run.call(b"EXISTS", key) != 0
    except ErrorReply:
        return True  # it says nothing about it


def _keep_index(run: Run, index: bytes, keep_ms: int) -> None:
    left = run.call(b"PTTL", index)
    assert isinstance(left, int)
    if left < keep_ms:
        run.call(b"PEXPIRE", index, b"%d" % (keep_ms + min(keep_ms, SLACK_MS)))


def read_records(run: Run) -> Reply:
    def each() -> Iterator[Reply]:
        for key in run.keys:
            try:
                yield _show(run, key)
            except ErrorReply:
                yield None

    return list(each())


def swap_record(run: Run) -> Reply:
    record, index, state = run.keys
    key, expected, owner, ttl, keep, *more = run.args
    found = _show(run, record)
    last = 0 if found is None else found[0]
    assert isinstance(last, int)
    if last != int(expected):
        return [0, found]
    if not more:
        run.call(b"ZREM", index, key)
        run.call(b"DEL", record)
        return [1]
    _, known = _entry(run, state, by="hmget")
    version = max(run.now_us, int(known.get(b"mark", b"0")) + 1, last + 1)
    text = b"%d" % version
    alive = b"0" if ttl == b"0" else b"%d" % (run.now_us + int(ttl))
    if found is not None:
        _hset(run, state, mark=text)
        _keep_index(run, index, int(keep))
        run.call(b"PEXPIRE", record, keep)
        _hset(run, record, v=text, a=alive, k=keep, o=owner, d=more[0])
        return [1, version]
    turn = int(known.get(b"turn", b"0")) + 1
    if turn == SWAP_LOOK_EVERY:
        cursor = known.get(b"cursor", b"")
        noted = _behind(run, index, b"(" + cursor if cursor else b"-", b"+", SWAP_LOOK_COUNT)
        _hset(run, state, mark=text, turn=b"0", cursor=noted[-1] if len(noted) == SWAP_LOOK_COUNT else b"")
        for other in noted:
            if not _exists(run, record.removesuffix(key) + other):
                run.call(b"ZREM", index, other)
    else:
        _hset(run, state, mark=text, turn=b"%d" % turn)
    run.call(b"ZADD", index, b"0", key)
    _keep_index(run, index, int(keep))
    _hset(run, record, v=text, a=alive, k=keep, o=owner, d=more[0])
    try:
        run.call(b"PEXPIRE", record, keep)
    except ErrorReply:
        run.call(b"DEL", record)
        raise
    return [1, version]


def _touch(run: Run, key: bytes, owner: bytes, ttl: int) -> int:
    """For how long it is kept, 0: it is not this owner's."""
    _, fields = _entry(run, key, by="hmget")
    if fields.get(b"o") != owner:
        return 0
    _hset(run, key, a=b"%d" % (run.now_us + ttl))
    run.call(b"PEXPIRE", key, fields[b"k"])
    return int(fields[b"k"])


def touch_records(run: Run) -> Reply:
    index = run.args[-1]
    replies: list[Reply] = []
    longest = 0
    for at, key in enumerate(run.keys):
        try:
            keep = _touch(run, key, run.args[2 * at], int(run.args[2 * at + 1]))
            replies.append(TOUCHED_CODE if keep else NOT_TOUCHED_CODE)
            longest = max(longest, keep)
        except ErrorReply as error:
            replies.append(NOBODY_CAN_TELL_CODE if refused_to_write(error) else NOT_TOUCHED_CODE)
    if longest:
        with suppress(ErrorReply):
            _keep_index(run, index, longest)
    return replies


def list_records(run: Run) -> Reply:
    [index], (prefix, first, last, limit) = run.keys, run.args
    count = min(LIST_LOOK_COUNT, int(limit) + LIST_SPARE_COUNT)
    noted = _behind(run, index, first, last, count)
    up_to = noted[-1] if len(noted) == count else None
    found: list[Reply] = []
    for key in noted:
        if len(found) >= int(limit):
            return [found[-1], *found]
        if _exists(run, prefix + key):
            found.append(key)
        else:
            run.call(b"ZREM", index, key)
    return [up_to, *found]


MODELS: dict[str, Model] = {
    "read_records": read_records,
    "swap_record": swap_record,
    "touch_records": touch_records,
    "list_records": list_records,
}
