"""Names and nodes.

    /chroot/<namespace>                            stays for ever; its czxid tells one cluster from another
    /chroot/<namespace>/<name>                     a container: the server removes it once it is empty
        <owner>.<session>.<weight>.<capacity>.f__lock__0000000007     a claim: ephemeral, in the order of its number
        <owner>.<session>.<weight>.<capacity>.u__lock__0000000008     one that may be granted out of turn
        <owner>.<session>.<weight>.<capacity>.F__lock__0000000009     F, U: one whose hold may leave something behind
        ~will.<owner>.<weight>.<capacity>.<ms>     its holder asked for a lock_delay: what happens if it ends uncleanly
        ~ghost.<owner>.<weight>.<capacity>.<ms>    keeps the name closed for so long from when it was made
        ~seat.<owner>.<weight>.<capacity>.0000000009       granted out of turn
        ~last.<node of a claim>                    an end note: of a hold that did not end cleanly, or may not
        ~<node>                                    made and deleted in the same step, as a claim hands off its hold
    /chroot/<namespace>/%rates/<name>              a limiter's number
    /chroot/<namespace>/%clock                     written to learn the server's time

1. Everything that decides who is next stands in the names, so that one listing is enough.
2. A name is percent-encoded into one step of a path, so that any text will do, and `%rates` is nobody's.
3. The number at the end counts all children of the parent. It is a signed 32-bit number that wraps: the order is that
   of the distance from any one of them, for claims that are alive at the same time are far less than 2³¹ apart.
4. We respect kazoo's locks: `<uuid>__lock__<number>` takes all, `<uuid>__rlock__<number>` is a reader. kazoo's respect
   what has their kind of name: all of them wait for `__lock__`, and its `WriteLock` for `__rlock__` as well. So a
   permit is called a lock, and a reader an rlock. (A permit was called so once, and is still known by that name.)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from ...model import SHARED_CAPACITY, LockSpec

RATES, CLOCK = "%rates", "%clock"
WILL, TOMBSTONE, SLOT, END_NOTE = "~will.", "~ghost.", "~seat.", "~last."
_PLAIN = " !$&'()*+,-.:;<=>?@[]^_`{|}~\"\\#"
_NODE = re.compile(r"(?P<who>.*)__(?P<kind>r?lock|permit)__(?P<number>-?\d{10})", re.ASCII)
_HALF, _WHOLE = 1 << 31, 1 << 32


def step(name: str) -> str:
    """A name as one step of a path.

    >>> step("orders/7 é")
    'orders%2F7 %C3%A9'
    """
    return "%2E" * len(name) if name in (".", "..") else quote(name, safe=_PLAIN)


def name_of(step: str) -> str:
    return unquote(step)


@dataclass(slots=True)
class QueueEntry:
    """A claim as its node's name tells it. `capacity` is 0 for one of kazoo's, which takes all of whatever there is."""

    node: str
    number: int
    owner: str
    session: int
    weight: int
    capacity: int
    fair: bool = True
    plain: bool = True
    """When its hold has ended, nothing stays behind."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A will, a tombstone or a slot. `length` is in seconds; a slot has a number instead."""

    node: str
    owner: str
    weight: int
    capacity: int
    length: float = 0.0
    number: int = 0


def prefix_of(owner: str, session: int, spec: LockSpec) -> str:
    """The name of a claim's node, up to the number that the server adds."""
    kind = "rlock" if spec.mode == "read" else "lock"
    fair = "f" if spec.fair else "u"
    if spec.lock_delay or spec.hold_at_least or spec.robust:
        fair = fair.upper()
    return f"{owner}.{session & 0xFFFFFFFFFFFFFFFF:x}.{spec.weight}.{spec.capacity}.{fair}__{kind}__"


def entry_of(node: str) -> QueueEntry | None:
    """A claim, ours or kazoo's; None for what is none."""
    if (match := _NODE.fullmatch(node)) is None:
        return None
    who, kind, number = match["who"], match["kind"], int(match["number"])
    parts = who.split(".")
    if len(parts) == 5:
        try:
            owner, session, weight, capacity, fair = parts
            return QueueEntry(
                node, number, owner, _signed(int(session, 16)), int(weight), int(capacity), fair in "fF", fair in "fu"
            )
        except ValueError:
            pass  # somebody else's, after all
    if kind == "rlock":
        return QueueEntry(node, number, who, 0, 1, SHARED_CAPACITY)
    return QueueEntry(node, number, who, 0, 0, 0)


def in_order(entries: list[QueueEntry]) -> list[QueueEntry]:
    """By their numbers, which wrap (rule 3)."""
    if not entries:
        return entries
    base = entries[0].number
    return sorted(entries, key=lambda entry: (entry.number - base + _HALF) % _WHOLE)


def will_of(owner: str, spec: LockSpec) -> str:
    return f"{WILL}{owner}.{spec.weight}.{spec.capacity}.{round(spec.lock_delay * 1000)}"


def tombstone_of(owner: str, weight: int, capacity: int, seconds: float) -> str:
    return f"{TOMBSTONE}{owner}.{weight}.{capacity}.{round(seconds * 1000)}"


def slot_prefix(owner: str, spec: LockSpec) -> str:
    return f"{SLOT}{owner}.{spec.weight}.{spec.capacity}."


def handoff_marker_of(node: str) -> str:
    """The node that is made for a moment when the hold of this one is let go of."""
    return f"~{node}"


def end_note_of(node: str) -> str:
    """Of the claim with this node."""
    return END_NOTE + node


def owner_of_end_note(node: str) -> str | None:
    entry = entry_of(node.removeprefix(END_NOTE)) if node.startswith(END_NOTE) else None
    return None if entry is None else entry.owner


def marker_of(node: str) -> Marker | None:
    parts = node.split(".")
    try:
        _, owner, weight, capacity, last = parts
        if node.startswith(SLOT):
            return Marker(node, owner, int(weight), int(capacity), number=int(last))
        return Marker(node, owner, int(weight), int(capacity), int(last) / 1000)
    except ValueError:
        return None


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
