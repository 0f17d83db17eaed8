"""Lines as the programs of `backends/redis/scripts` read, change and keep them (`forms.lua`, `line.lua`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from holdfast._core.line import GHOST, Ended, Line, Place

from .hash_value import HashValue
from .keyspace import KeyspaceEntry
from .line_value import LineValue
from .protocol import ErrorReply
from .script_run import Run

DAY_MS = 86_400_000
YEAR_MS = 366 * DAY_MS
HOUR_US = 3_600_000_000
MARK_DIGITS_COUNT = 16
NOWHERE, NOT_YET_HEARING = "-", "?"


@dataclass(slots=True, eq=False)
class ServedLine(Line):
    """A line as the programs work on it: the same rules as the reference, but they look at few places.

    Whoever waits in vain is dropped when it has become the first; whoever is granted something is pushed to once that
    is written, but for `asker`, who is told by the reply.
    """

    key: bytes = b""
    asker: str = ""
    hashed: bool = False
    ranks: int = 0
    kept_us: int = 0
    noted_us: int = 0
    pushes: list[Place] = field(default_factory=list)
    newcomer: Place | None = None

    def waiting(self) -> list[Place]:
        """Those who wait, also in vain."""
        return [place for place in self.places if not place.token]

    def sweep(self, now: int) -> None:
        waiting = self.waiting()
        first = next((place for place in waiting if not place.gone(now)), None)
        before = waiting if first is None else waiting[: waiting.index(first)]
        over = [place for place in self.places if place.gone(now) and (place.token or place in before)]
        for place in sorted(over, key=lambda place: place.token):
            if place.token and not place.evicted:
                self._end(place, "expired")
            self._remove(place)

    def take(self, asked: Place, capacity: int, now: int, clock: int, queue: bool) -> tuple[Place | None, list[Place]]:
        known = self.find(asked.owner)
        if known is not None and not known.token and known.gone(now):
            self._remove(known)
            known = None
        if known is None or known.evicted:
            self.ranks += 1
            asked.rank = self.ranks
            self.newcomer = asked
        return super(ServedLine, self).take(asked, capacity, now, clock, queue)

    def promote(self, now: int, clock: int) -> list[Place]:
        free = self.capacity - sum(place.weight for place in self.places if place.occupies(now))
        blocked = False
        promoted = []
        for place in self.waiting():
            if place.gone(now):
                if not blocked or self._looks_further(free):
                    self._remove(place)
            elif place.weight > free or (blocked and place.fair):
                blocked = True
            else:
                free -= place.weight
                self.mark = max(self.mark + 1, clock)
                place.token, place.since, place.after = self.mark, now, self.last
                self._change(place)
                promoted.append(place)
                if place.owner != self.asker:
                    self.pushes.append(place)
        return promoted

    def _looks_further(self, free: int) -> bool:
        """The programs do, for those who may overtake; and before a newcomer joins."""
        return free > 0 and any(not place.fair for place in self.waiting() if place is not self.newcomer)

    def ahead(self, mine: Place, now: int) -> int:
        """At most so many: some may have left."""
        waiting = self.waiting()
        holding = sum(place.rank < mine.rank for place in self.places if place.occupies(now))
        return min(mine.rank - waiting[0].rank, len(waiting) - 1) + holding


@dataclass(frozen=True, slots=True)
class Asked:
    """A claim as a program is sent it: "owner detail" (see forms.lua)."""

    place: Place
    capacity: int


def read_claim(said: bytes, now: int) -> Asked:
    text = to_text(said)
    try:
        owner, wake, _, capacity, weight, fair, ttl, patience, delay, info = text.split(" ", 9)
        spans = int(ttl), int(patience), int(delay)
        place = Place(owner, int(weight), fair in "13", *spans, now, now, wake=wake, robust=fair in "23")
    except ValueError:
        raise ErrorReply("ERR user_script: attempt to perform arithmetic on a nil value") from None
    place.actor = info  # all that a survey tells of a claim; it means nothing here
    return Asked(place, int(capacity))


def digits(number: int) -> bytes:
    return b"%016d" % number


def ended_text(last: Ended | None) -> bytes:
    """How the last hold ended, as forms.lua has it."""
    if last is None:
        return b""
    how = {"released": b"r", "expired": b"x", "evicted": b"e"}[last.how]
    return b"%b%d%016d%b" % (how, last.robust, last.token, to_bytes(last.owner))


def read_ended(text: bytes) -> Ended | None:
    if not text:
        return None
    how = {b"r": "released", b"x": "expired", b"e": "evicted"}[text[:1]]
    return Ended(int(text[2:18]), to_text(text[18:]), how, text[1:2] == b"1")


def is_mark(entry: KeyspaceEntry | None) -> bool:
    if entry is None or not isinstance(entry.value, bytes):
        return False
    rest = entry.value[MARK_DIGITS_COUNT:]
    return len(entry.value) == MARK_DIGITS_COUNT or (bool(rest) and not rest[:1].isdigit())


def load(run: Run, key: bytes) -> ServedLine:
    line = ServedLine(key=key)
    entry = run.entry(key, by="mget")
    if entry is None or isinstance(entry.value, dict) or getattr(entry.value, "hashed", False):
        run.check("hget", key=key)
    if entry is None:
        return line
    value = entry.value
    if isinstance(value, dict | HashValue):
        raise ErrorReply("WRONGTYPE Operation against a key holding the wrong kind of value")
    if isinstance(value, LineValue):
        line.capacity, line.mark, line.places = value.capacity, value.mark, [replace(place) for place in value.places]
        line.hashed, line.ranks = value.hashed, value.ranks
        line.kept_us, line.noted_us, line.last = value.kept_us, value.noted_us, value.last
        if not value.hashed:
            line.places[0].rank = line.ranks = 1
            line.changed = list(line.places)  # it is written anew as a whole
    elif is_mark(entry) and value[:MARK_DIGITS_COUNT].isdigit():
        line.mark, line.last = int(value[:MARK_DIGITS_COUNT]), read_ended(value[MARK_DIGITS_COUNT:])
    else:
        raise ErrorReply("ERR user_script: this is no line")
    return line


def reaches(run: Run, place: Place) -> bool:
    """`reached` in line.lua: an error tells nothing, and neither does a cluster."""
    if place.wake == NOWHERE:
        return True
    try:
        ended = b" " + ended_text(place.after) if place.after is not None else b""
        message = b"%b %d%b" % (to_bytes(place.owner), place.token, ended)
        heard = run.call(b"PUBLISH", to_bytes(place.wake), message)
    except ErrorReply:
        return True
    return heard != 0 or place.wake.endswith("*")


def to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def to_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _over_at(place: Place) -> int:
    if not place.token:
        return place.expires
    return place.expires + (max(place.delay, place.ttl) if place.evicted else place.delay)


def left_ms(place: Place) -> int:
    """For how long the server keeps what it knows, as a claim says it: `left` in forms.lua."""
    return (place.ttl + place.delay) // 1000 + (YEAR_MS if place.robust else DAY_MS)


def save(run: Run, line: ServedLine) -> None:
    now = run.now_us
    if not line.places:
        line.hashed, line.ranks, line.kept_us, line.noted_us = False, 0, 0, 0
        if line.mark:
            kept_ms = DAY_MS if line.unrecovered is None else YEAR_MS
            run.put(line.key, digits(line.mark) + ended_text(line.last), kept_ms)
        return
    robust = line.unrecovered is not None or any(place.robust for place in line.changed)
    left_us = max([0, *(_over_at(place) - now for place in line.changed)]) + (YEAR_MS if robust else DAY_MS) * 1000
    line.changed = []
    [first, *others] = line.places
    if line.hashed or others or first.token != line.mark or first.evicted or first.owner.startswith(GHOST):
        run.check("set" if not line.hashed else "hset", key=line.key)
        run.check("hset", key=line.key)
        line.hashed = True
        if now + left_us > line.kept_us:
            line.kept_us = now + left_us + HOUR_US
        ms: int | None = (line.kept_us - now) // 1000
    else:
        ms = left_us // 1000
    run.put(
        line.key,
        LineValue(
            *(line.capacity, line.mark, tuple(map(replace, line.places)), line.hashed, line.ranks),
            *(line.kept_us, line.noted_us, line.last),
        ),
        ms,
    )


def settle(run: Run, line: ServedLine, asker: bytes | None = None) -> None:
    """Write the line, then tell those who were granted; whoever cannot be told is gone (`settle` in line.lua)."""
    save(run, line)
    while line.pushes:
        pushes, line.pushes = line.pushes, []
        if asker is not None:
            run.call(b"PUBLISH", asker, b"")
        lost = [place for place in pushes if not reaches(run, place)]
        for place in lost:
            line.places.remove(place)
        if lost:
            line.promote(run.now_us, run.now_us)
            save(run, line)
