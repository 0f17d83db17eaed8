"""What each program of `backends/redis/scripts` does at a server, on the reference of the line (`_core/line.py`).

What differs from the reference is what only a server can know: a waiter whose push reaches nobody is not granted, and
the short paths of the programs answer with digits where the general ones answer with a number.
"""

from __future__ import annotations

from typing import TypeGuard

from holdfast._core import gcra
from holdfast._core.line import Place

from .keyspace import KeyspaceEntry
from .line_value import LineValue
from .protocol import ErrorReply, Reply
from .queue_lines import (
    DAY_MS,
    MARK_DIGITS_COUNT,
    NOT_YET_HEARING,
    NOWHERE,
    ServedLine,
    digits,
    ended_text,
    is_mark,
    left_ms,
    load,
    read_claim,
    read_ended,
    save,
    settle,
    to_bytes,
    to_text,
)
from .script_run import Model, Run, refused_to_write

SAID = ("held", "refused", "evicted", "expired")
NOBODY_CAN_TELL_CODE = 4


def _take_if_free(run: Run, key: bytes, said: bytes, left: bytes) -> bytes | None:
    """The short path of take.lua: its token if nobody stands there, and the mark (if any) is in the past."""
    entry = run.entry(key, by="mget")
    if entry is not None and (
        isinstance(entry.value, dict) or (isinstance(entry.value, LineValue) and entry.value.hashed)
    ):
        run.check("set", key=key)  # SET NX finds that out
    if entry is not None and not (
        is_mark(entry) and isinstance(entry.value, bytes) and entry.value < digits(run.now_us)  # as text, as there
    ):
        return None
    now = run.now_us
    asked = read_claim(said, now)
    place = asked.place
    place.token, place.expires = now, now + place.ttl
    place.rank = 1
    ended = b"" if entry is None or not isinstance(entry.value, bytes) else entry.value[MARK_DIGITS_COUNT:]
    run.put(key, LineValue(asked.capacity, now, (place,), last=read_ended(ended)), int(left))
    return digits(now) + ended


def takes(run: Run) -> Reply:
    replies: list[Reply] = []
    index = run.args[2 * len(run.keys)] if len(run.args) > 2 * len(run.keys) else None
    for at, key in enumerate(run.keys):
        said, left = run.args[2 * at : 2 * at + 2]
        try:
            token = _take_if_free(run, key, said, left)
            hears = read_claim(said, run.now_us).place.wake != NOT_YET_HEARING
            replies.append(token or (_take(run, [key], [said, left], index)[0] if hears else 0))
        except ErrorReply:
            replies.append(0)
    return replies


def take(run: Run) -> Reply:
    keys, count = run.keys, len(run.keys)
    if count == 1 and (token := _take_if_free(run, keys[0], run.args[0], run.args[1])) is not None:
        return token
    index = run.args[2 * count] if len(run.args) > 2 * count else None
    replies = _take(run, keys, run.args, index)
    return replies[0] if count == 1 else replies


def _take(run: Run, keys: list[bytes], args: list[bytes], index: bytes | None) -> list[Reply]:
    now, count = run.now_us, len(keys)
    lines = [load(run, key) for key in keys]
    claims = [read_claim(args[2 * at], now) for at in range(count)]
    other = [line.mismatch(asked.capacity, now) for asked, line in zip(claims, lines, strict=True)]
    if any(capacity is not None for capacity in other):
        return [-(capacity or 0) for capacity in other]
    queue = index != b"0"
    known = [_stands(line, asked.place.owner, now) for asked, line in zip(claims, lines, strict=True)]
    for asked, here in zip(claims, known, strict=True):
        if asked.place.wake == NOT_YET_HEARING:
            asked.place.wake = NOWHERE
            queue = queue and here  # who stands there already keeps its place
    mine: list[Place | None] = []
    for asked, line in zip(claims, lines, strict=True):
        line.asker = asked.place.owner
        mine.append(line.take(asked.place, asked.capacity, now, now, queue)[0])
        line.asker = ""
    if not queue and None in mine:  # all or none
        for at, line in enumerate(lines):
            place = mine[at]
            if place is not None and not known[at]:
                line.release(place.owner, now, now, told=False)
        mine = [None] * count
    replies: list[Reply] = []
    for key, line, place in zip(keys, lines, mine, strict=True):
        if place is not None and place.token and line.last is not None:
            replies.append(digits(place.token) + ended_text(line.last))
        elif place is None or place.token:
            replies.append(place.token if place else 0)
        else:
            replies.append([line.look_again(place, now), line.ahead(place, now), line.mark])
            if index is not None and line.noted_us < place.expires:
                line.noted_us = place.expires + place.patience
                run.call(b"ZADD", index, b"GT", b"%d" % line.noted_us, key)
                run.call(b"ZREMRANGEBYSCORE", index, b"-inf", b"%d" % now)
                run.call(b"PEXPIRE", index, args[1])
        settle(run, line)
    return replies


def _stands(line: ServedLine, owner: str, now: int) -> bool:
    place = line.find(owner)
    return place is not None and not place.evicted and (bool(place.token) or not place.gone(now))


def _is_holder(entry: KeyspaceEntry | None, owner: str) -> TypeGuard[KeyspaceEntry]:
    """Whether the short paths see this owner as the holder: it stands alone, in a string."""
    return (
        entry is not None
        and isinstance(entry.value, LineValue)
        and not entry.value.hashed
        and entry.value.places[0].owner == owner
    )


def _holds_still(holder: Place, ttl: bytes, now: int) -> bool:
    """As the short paths see it, which go by the ttl that the caller names."""
    return now < holder.expires - holder.ttl + int(ttl)


def release(run: Run) -> Reply:
    linger = int(run.args[2]) if len(run.args) > 2 else 0
    return _release_one(run, run.keys[0], run.args[0], run.args[1], linger, run.args[3] if len(run.args) > 3 else None)


def _release_one(run: Run, key: bytes, said: bytes, ttl: bytes, linger: int = 0, asker: bytes | None = None) -> int:
    owner, now, entry = to_text(said), run.now_us, run.entry(key, by="mget")
    if is_mark(entry):
        return 0
    if not linger and _is_holder(entry, owner):
        return int(_leave_alone(run, load(run, key), ttl))
    line = load(run, key)
    held, _ = line.release(owner, now, now, linger)
    for place in line.places:
        place.wake = place.wake or NOWHERE
    settle(run, line, asker)
    return int(held)


def _leave_alone(run: Run, line: ServedLine, ttl: bytes) -> bool:
    """`leave_alone` in left.lua."""
    [holder] = line.places
    held, before = _holds_still(holder, ttl, run.now_us), line.unrecovered
    line._end(holder, "released" if held else "expired")
    kept_ms = DAY_MS if held and holder.robust and before is None else None
    run.put(line.key, digits(line.mark) + ended_text(line.last), kept_ms)
    return held


def releases(run: Run) -> Reply:
    replies: list[Reply] = []
    for at, key in enumerate(run.keys):
        try:
            replies.append(_release_one(run, key, run.args[2 * at], run.args[2 * at + 1]))
        except ErrorReply:
            replies.append(2)
    return replies


def renew(run: Run) -> Reply:
    replies: list[Reply] = []
    for at, key in enumerate(run.keys):
        owner, ttl, token = run.args[3 * at : 3 * at + 3]
        try:
            replies.append(_renew_one(run, key, to_text(owner), ttl, int(token)))
        except ErrorReply as error:
            replies.append(NOBODY_CAN_TELL_CODE if refused_to_write(error) else 1)
    return replies


def _renew_one(run: Run, key: bytes, owner: str, ttl: bytes, token: int) -> int:
    line = load(run, key)
    entry = run.entry(key, by="mget")
    if _is_holder(entry, owner):  # it is renewed without being read
        holder = line.places[0]
        if holder.token != token:
            return SAID.index("refused")
        if not _holds_still(holder, ttl, run.now_us):
            return SAID.index("expired")
        holder.expires = run.now_us + holder.ttl
        run.put(key, LineValue(line.capacity, line.mark, (holder,), last=line.last), left_ms(holder))
        return 0
    said = SAID.index(line.renew(owner, run.now_us, token))
    if said == 0:
        save(run, line)
    return said


def evict(run: Run) -> Reply:
    line = load(run, run.keys[0])
    found, _ = line.evict(int(run.args[0]), run.now_us, run.now_us)
    settle(run, line)
    return int(found)


def recover(run: Run) -> Reply:
    line = load(run, run.keys[0])
    before = line.unrecovered
    held = line.recovered(to_text(run.args[0]), int(run.args[1]), run.now_us)
    if held and before is not None:
        save(run, line)
    return int(held)


def survey(run: Run) -> Reply:
    now = run.now_us
    views: list[Reply] = [now]
    for number, key in enumerate(run.keys, 1):
        try:
            line = load(run, key)
        except ErrorReply:
            continue  # what cannot be read is no line
        standing = [place for place in line.places if place.counts(now) and not place.gone(now)]
        line.sweep(now)
        left = ended_text(line.unrecovered)
        if standing or left:
            capacity = line.capacity if standing else 0
            views.append([number, capacity, left, *(_view(place, now) for place in standing)])
    return views


def _view(place: Place, now: int) -> Reply:
    return [
        to_bytes(place.owner), place.token, place.weight, place.since, place.expires, to_bytes(place.actor),
        int(place.holds(now)),
    ]  # fmt: skip


def allow(run: Run) -> Reply:
    entry, now = run.entry(run.keys[0]), run.now_us
    arrival = int(entry.value) if entry is not None and isinstance(entry.value, bytes) else 0
    interval, burst, cost, reserve = map(int, run.args)
    allowed, wait, after = gcra.allow(arrival, now, interval, burst, cost, reserve)
    if allowed:
        run.put(run.keys[0], b"%d" % after, round((after - now) / 1000 + 1000))
    return [int(allowed), wait]


MODELS: dict[str, Model] = {
    "allow": allow,
    "evict": evict,
    "recover": recover,
    "release": release,
    "releases": releases,
    "renew": renew,
    "survey": survey,
    "take": take,
    "takes": takes,
}
