"""A queue as its keys tell it; who of it holds is said in `ordered_keys.queue`. Pure reading.

1. A claim's place is its create revision. What was granted out of turn says so in its value.
2. Tokens grow in the order of grants. Where nobody was let past anybody that is the order of the claims, and the token
   of each is its create revision. A grant out of turn is written down, and its token is the revision of that: its mod
   revision. Everybody who waits at that moment came before it and will hold after it, and gets a mark in the same
   transaction: that its own grant is to be written down, too, in the same way, before it is let in. So whoever has no
   mark came after every grant that was written down.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypedDict

from ..ordered_keys import queue as ordered_keys
from ..ordered_keys.queue import Queue, orphans
from ..ordered_keys.views import HolderDetails
from .keys import END_NOTE, TOMBSTONE
from .rpc import KeyValue, OpResponse, unb64

WAITING, MARKED, CONFIRMED = 0, 1, 2
"""What a claim's value says of its grant: nothing; that it holds; that it holds since its last change (rule 2)."""


class ClaimValue(TypedDict, total=False):
    """What stands in a key: short names, because etcd has to read and to keep it. What is usual is left out."""

    i: str  # the owner
    t: float  # its ttl
    a: str  # the actor
    m: str  # the mode
    h: str  # the host
    p: int  # the process
    w: int  # the weight, and
    c: int  # the capacity, of what is no mutex
    d: float  # its lock_delay
    l: int  # noqa: E741  its end may leave a tombstone
    u: int  # it may be granted out of turn
    s: int  # since when it stands there, or holds: microseconds of its owner's calendar
    g: int  # WAITING, MARKED, CONFIRMED
    o: int  # its create revision is no token any more (rule 2)
    k: int  # the token of a tombstone, or of an end note that was not written with its claim
    n: int  # it has an end note once it holds, and says so
    e: str  # how the hold of an end note ended; of a claim: it is being evicted
    r: int  # of an end note: its hold leaves something to put right


@dataclass(slots=True)
class KeyEntry:
    """One claim, or tombstone, as its key tells it."""

    key: str
    name: str
    owner: str
    created: int
    changed: int
    lease: int
    value: ClaimValue
    tombstone: bool = False
    is_note: bool = False
    """It is an end note."""

    @property
    def weight(self) -> int:
        return int(self.value.get("w", 1))

    @property
    def capacity(self) -> int:
        return int(self.value.get("c", 1))

    @property
    def granted(self) -> int:
        return int(self.value.get("g", WAITING))

    @property
    def marked(self) -> bool:
        """Its create revision is no token any more (rule 2)."""
        return bool(self.value.get("o"))

    @property
    def is_untold(self) -> bool:
        """It is to have an end note before it is told that it holds, and has none yet."""
        return bool(self.value.get("n")) and not self.granted

    @property
    def stays(self) -> bool:
        """Its end may leave a tombstone."""
        return bool(self.value.get("l"))

    @property
    def token(self) -> int:
        if token := self.value.get("k"):
            return int(token)
        return self.changed if self.is_note or self.granted == CONFIRMED else self.created

    @property
    def live(self) -> bool:
        return not self.tombstone and not self.is_note

    @property
    def ended(self) -> str:
        return self.value.get("e", "unknown")

    @property
    def robust(self) -> bool:
        return bool(self.value.get("r"))

    @property
    def holder(self) -> HolderDetails:
        value = self.value
        return HolderDetails(value["h"], value["p"], value["a"], value["m"])


def read(kv: KeyValue) -> KeyEntry:
    key = kv["key"]
    head, _, slot = unb64(key).rpartition("\0")
    value: ClaimValue = json.loads(unb64(kv["value"]))
    return KeyEntry(
        key,
        head.split("/", 2)[2],
        value["i"],
        int(kv["create_revision"]),
        int(kv["mod_revision"]),
        int(kv.get("lease", 0)),
        value,
        slot.startswith(TOMBSTONE) and not slot.startswith(END_NOTE),
        slot.startswith(END_NOTE),
    )


def read_all(response: OpResponse) -> list[KeyEntry]:
    """The entries of one range, in their order."""
    return sorted(map(read, response["response_range"].get("kvs", ())), key=lambda entry: entry.created)


def split_notes(entries: Iterable[KeyEntry]) -> tuple[list[KeyEntry], list[KeyEntry]]:
    """Tombstones, and end notes."""
    found: tuple[list[KeyEntry], list[KeyEntry]] = [], []
    for entry in entries:
        found[entry.is_note].append(entry)
    return found


EtcdQueue: TypeAlias = Queue[KeyEntry, KeyEntry]


def judge(claims: Sequence[KeyEntry], tombstones: Iterable[KeyEntry]) -> EtcdQueue:
    """Claims in order, and tombstones: who holds."""
    return ordered_keys.judge(claims, orphans(tombstones, claims), lambda claim: bool(claim.granted))


def before(queue: EtcdQueue, owner: str) -> list[KeyEntry]:
    """All claims whose end may let this one in."""
    found: list[KeyEntry] = []
    for entry in sorted((*queue.holding, *queue.waiting), key=lambda each: each.created):
        if entry.owner == owner:
            break
        found.append(entry)
    late = [entry for entry in queue.holding if entry not in found and entry.owner != owner]
    return [*found, *late]
