"""Lines as the programs of `backends/redis/scripts` read, change and keep them (`forms.lua`, `line.lua`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast._core.line import Line, Place

from .keyspace import KeyspaceEntry
from .line_value import LineValue, freeze
from .protocol import ErrorReply
from .script_run import Run

DAY_MS = 86_400_000
MARK_DIGITS_COUNT = 16
NOWHERE, NOT_YET_HEARING = "-", "?"


@dataclass(slots=True, eq=False)
class ToldLine(Line):
    """A line whose promotions are pushed at once. `asker` is told by the reply, and not pushed to."""

    reaches: Callable[[Place], bool] = field(default=lambda place: True)
    asker: str = ""

    def promote(self, now: int, clock: int) -> list[Place]:
        """As the reference, but whoever cannot be told is gone: `promote_one` in line.lua."""
        free = self.capacity - sum(place.weight for place in self.places if place.occupies(now))
        blocked = False
        promoted = []
        for place in list(self.places):
            if place.token:
                continue
            if place.weight > free or (blocked and place.fair):
                blocked = True
                continue
            self.mark = max(self.mark + 1, clock)
            place.token, place.since = self.mark, now
            if place.owner == self.asker or self.reaches(place):
                free -= place.weight
                promoted.append(place)
            else:
                self.places.remove(place)
        return promoted


@dataclass(frozen=True, slots=True)
class Asked:
    """A claim as a program is sent it: "owner detail" (see forms.lua)."""

    place: Place
    capacity: int


def read_claim(said: bytes, now: int) -> Asked:
    text = to_text(said)
    try:
        owner, wake, _, capacity, weight, fair, ttl, patience, delay, info = text.split(" ", 9)
        place = Place(owner, int(weight), fair == "1", int(ttl), int(patience), int(delay), now, now, wake=wake)
    except ValueError:
        raise ErrorReply("ERR user_script: attempt to perform arithmetic on a nil value") from None
    place.actor = info  # all that a survey tells of a claim; it means nothing here
    return Asked(place, int(capacity))


def digits(number: int) -> bytes:
    return b"%016d" % number


def is_mark(entry: KeyspaceEntry | None) -> bool:
    return entry is not None and isinstance(entry.value, bytes) and len(entry.value) == MARK_DIGITS_COUNT


def load(run: Run, key: bytes) -> ToldLine:
    line = ToldLine(reaches=lambda place: reaches(run, place))
    entry = run.entry(key)
    if entry is None:
        return line
    if isinstance(entry.value, dict):
        raise ErrorReply("WRONGTYPE Operation against a key holding the wrong kind of value")
    if isinstance(entry.value, LineValue):
        entry.value.thaw(line)
    elif is_mark(entry) and entry.value.isdigit():
        line.mark = int(entry.value)
    else:
        raise ErrorReply("ERR user_script: this is no line")
    return line


def reaches(run: Run, place: Place) -> bool:
    """`reached` in line.lua: an error tells nothing, and neither does a cluster."""
    if place.wake == NOWHERE:
        return True
    try:
        heard = run.call(b"PUBLISH", to_bytes(place.wake), b"%b %d" % (to_bytes(place.owner), place.token))
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
    return (place.ttl + place.delay) // 1000 + DAY_MS


def save(run: Run, key: bytes, line: Line, ms: int | None = None) -> None:
    """`ms` is for how long the short paths keep it; the general path finds that out from the line."""
    if line.places:
        last = max(_over_at(place) for place in line.places)
        run.put(key, freeze(line), ms or max(last - run.now_us, 0) // 1000 + DAY_MS)
    elif line.mark:
        run.put(key, digits(line.mark), DAY_MS)
