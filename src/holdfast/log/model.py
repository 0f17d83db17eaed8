"""Events, positions and versions: the words of the log as data, and their checks.

1. A stream has versions 1, 2, 3 … without a hole. Version 0 is a stream without events.
2. A position is a place in the one order of all streams. It only rises along a stream; what lies between two positions
   has no meaning. Its text, "12-3", sorts nothing: compare positions, not texts.
3. An event's id is chosen by who appends, before the first attempt, so that a retried append is the same append.
4. A stream's partition is the shard that `locks.partitions` gives to the same name: its BLAKE2b of eight bytes, read as
   a big-endian number, modulo the partitions. It is the same in every process and every version of holdfast.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

from ..errors import Misconfigured
from ..model import check_name
from ..recipes.partition_spec import shard_of

MAX_EVENTS_COUNT = 1000
MAX_DATA_BYTES = 1024 * 1024
MAX_APPEND_BYTES = 8 * MAX_DATA_BYTES
MAX_STREAM_BYTES = 400
MAX_ID_BYTES = 200
MAX_POSITION_BYTES = 41
MAX_LIMIT_COUNT = 10_000
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
S = TypeVar("S")


class Expected(Enum):
    """What an append expects of its stream, where it is not a version."""

    ANY = "any"
    NONE = "none"


ANY = Expected.ANY
"""Append whatever the stream's version is."""
NONE = Expected.NONE
"""Append only if the stream has no event yet."""


class Position(NamedTuple):
    """A place in the order of all events.

    >>> Position(12, 3) < Position(12, 4) < Position(13, 0)
    True
    >>> Position.parse(str(Position(12, 3)))
    Position(major=12, minor=3)
    """

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}-{self.minor}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """The position of a text as `str(position)` gives it."""
        fits = isinstance(text, str) and len(text) <= MAX_POSITION_BYTES
        major, _, minor = text.partition("-") if fits else ("", "", "")
        if not (major.isascii() and major.isdigit() and minor.isascii() and minor.isdigit()):
            raise Misconfigured(f"{text!r} is not a position, which looks like '12-3'; use str(position)")
        return cls(int(major), int(minor))


START = Position(0, 0)
"""Before the first event."""


@dataclass(frozen=True, slots=True)
class EventData:
    """An event to append: its type, its data (JSON), and its id, a random one unless you have a better.

    >>> EventData("paid", {"amount": 5}, id="payment-77").id
    'payment-77'
    """

    type: str
    data: object = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event of the log."""

    position: Position
    stream: str
    version: int
    id: str
    type: str
    data: Any


class Folded(NamedTuple, Generic[S]):
    """What a fold has come to, and the version of the stream that it came to: what the next append expects."""

    state: S
    version: int


class EncodedEvent(NamedTuple):
    """An event as its row has it."""

    id: str
    type: str
    data: str


@lru_cache(1024)
def slot_of(stream: str) -> int:
    """The hash of a stream (rule 4), less 2⁶³, so that it is a `bigint` of every database.

    >>> (slot_of("orders/99999") + 2**63) % 64
    62
    """
    return shard_of(stream, 2**64) - 2**63


def encode_events(events: EventData | Iterable[EventData]) -> list[EncodedEvent]:
    """Check the events of an append, and write their data as JSON in ASCII."""
    found = [events] if isinstance(events, EventData) else list(events) if isinstance(events, Iterable) else [events]
    if not found:
        raise Misconfigured("there is no event to append; give at least one")
    if len(found) > MAX_EVENTS_COUNT:
        raise Misconfigured(
            f"{len(found)} events in one append; at most {MAX_EVENTS_COUNT} are allowed: append in parts"
        )
    encoded = [_encoded(event) for event in found]
    size = sum(len(event.data) for event in encoded)
    if size > MAX_APPEND_BYTES:
        raise Misconfigured(f"the events of one append have {size} bytes; at most {MAX_APPEND_BYTES} are allowed")
    if len({event.id for event in encoded}) != len(encoded):
        raise Misconfigured("two events of one append have the same id; each event has its own")
    return encoded


def _encoded(event: object) -> EncodedEvent:
    if not isinstance(event, EventData):
        raise Misconfigured(f"append takes EventData(type, data), not {event!r:.80}")
    check_bounded(event.id, "event id", MAX_ID_BYTES)
    check_name(event.type, "event type")
    return EncodedEvent(event.id, event.type, encode_json(event.data, f"the data of event {event.id!r}"))


def encode_json(value: object, what: str) -> str:
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise Misconfigured(f"{what} cannot be written as JSON: {error}; give what json.dumps() takes") from error
    if len(text) > MAX_DATA_BYTES:
        raise Misconfigured(
            f"{what} has {len(text)} bytes as JSON; at most {MAX_DATA_BYTES} are allowed: keep it elsewhere and refer"
        )
    return text


def encode_state(state: object, what: str) -> str:
    """The state of a fold as JSON; refused if it would come back as another one: the fold would go on with that."""
    text = encode_json(state, what)
    if json.loads(text) != state:
        raise Misconfigured(
            f"{what} comes back from JSON as another value (keys become text, tuples lists); use what JSON keeps, or "
            "fold without snapshot="
        )
    return text


def check_bounded(name: str, what: str, limit: int) -> str:
    check_name(name, what)
    if len(name.encode()) > limit:
        raise Misconfigured(
            f"{what} {name[:40]!r}… has {len(name.encode())} bytes in UTF-8; at most {limit} are allowed"
        )
    return name


def check_stream(stream: str) -> str:
    return check_bounded(stream, "stream", MAX_STREAM_BYTES)


def check_count(value: int, what: str, low: int, high: int = 2**63 - 1) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise Misconfigured(f"{what} is a whole number from {low} to {high}, not {value!r}")
    return value


def check_expected(expected: int | Expected) -> int | Expected:
    if isinstance(expected, Expected):
        return NONE if expected is NONE else ANY
    if not isinstance(expected, int) or isinstance(expected, bool) or not 0 <= expected < 2**63:
        raise Misconfigured(f"expected= is the version that you have read, ANY or NONE, not {expected!r}")
    return expected or NONE


def check_position(position: Position, what: str) -> Position:
    try:
        major, minor = position
    except (TypeError, ValueError):
        raise Misconfigured(f"{what} is a Position (of an event, or START), not {position!r:.80}") from None
    return Position(check_count(major, what, 0), check_count(minor, what, 0))
