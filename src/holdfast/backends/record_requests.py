"""What is asked of a server about records (`holdfast.record`), each carried out in one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..record import Record, Swapped


@dataclass(slots=True)
class ReadRecord:
    """Reply: the `Record`, or None."""

    key: str


@dataclass(slots=True)
class SwapRecord:
    """Write if the version is `expected` (0: there is none); delete, where `data` is None. Reply: `Swapped`."""

    key: str
    expected: int
    data: bytes | None
    owner: str
    ttl: float
    keep: float


@dataclass(slots=True)
class Touch:
    """Have a record of this owner live for another ttl. It is kept for as long as it was to be kept, from now."""

    key: str
    owner: str
    ttl: float


@dataclass(slots=True)
class TouchRecords:
    """Reply: for each whether the record is there, alive or not, and this owner's; None: nobody can tell."""

    touches: Sequence[Touch]


@dataclass(slots=True)
class ListRecords:
    """Reply: the first `limit` records behind `after` whose key begins with `prefix`, in the order of their keys."""

    prefix: str
    after: str
    limit: int


RecordRequest: TypeAlias = ReadRecord | SwapRecord | TouchRecords | ListRecords
RECORD_REQUESTS = (ReadRecord, SwapRecord, TouchRecords, ListRecords)
RecordReply: TypeAlias = Record | Swapped | list[bool | None] | list[Record] | None
