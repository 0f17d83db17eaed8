"""A queue as others see it.

1. Since when a hold is held says its node's data, once it is confirmed (see `claim_state`). One that is neither
   confirmed nor brand-new has come to its turn in this very moment.
2. Whose data tells a token holds. Of the others those hold whose turn it is, beside them. Slots are not looked at: they
   are taken first, and kept or given back afterwards (see `queue`, rule 1); who keeps one writes its token down before
   it holds.
3. For how long a hold is good nobody else can know: what is shown is the longest it can be without a word of
   its owner.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...model import SHARED_CAPACITY, ClaimView, LockView
from ..ordered_keys.end_notes import left_by, unrecovered_of
from ..ordered_keys.views import HolderDetails, claim_view
from .claim_state import ClaimData, read_about
from .end_notes import NodeNote, read_note
from .jute import Stat
from .paths import Marker, QueueEntry, end_note_of
from .queue import NodeQueue, granted_of

CONFIRMED_BY_MS = 300
"""A hold is confirmed before it is so old."""

Node = tuple[bytes, Stat]


def token_of(node: Node) -> int:
    """The token of a claim, if it holds."""
    told = read_about(node[0]).get("token")
    return told if isinstance(told, int) else node[1].czxid


def holders_of(line: NodeQueue, read: Mapping[str, Node]) -> set[str]:
    """The owners that hold. Who is to have an end note holds once it is there."""
    told = {entry.owner for entry in line.claims if "token" in read_about(read[entry.node][0])}
    untold = {
        entry.owner
        for entry in line.claims
        if read_about(read[entry.node][0]).get("noted") and end_note_of(entry.node) not in line.notes
    }
    return granted_of(line, told) - untold


def view_of(name: str, line: NodeQueue, read: Mapping[str, Node], now: int) -> LockView | None:
    """None if nothing is there. `now` is in milliseconds of the server's calendar."""
    capacity = line.capacity or 1
    holding = holders_of(line, read)
    now = max(now, *(stat.mtime for _, stat in read.values()))
    holders: list[ClaimView] = []
    waiters: list[ClaimView] = []
    for entry in line.claims:
        if entry.node in read and entry.capacity in (capacity, 0):
            held = entry.owner in holding
            (holders if held else waiters).append(_claim(entry, read[entry.node], capacity, held, now))
    tombstones = [_tombstone(marker, read[marker.node], now) for marker in line.tombstones if marker.node in read]
    orphans = [(will, read[will.node]) for will in line.orphans if will.node in read]
    tombstones += [_tombstone(will, node, node[1].ctime) for will, node in orphans]
    holders += [closed for closed in tombstones if closed.remaining]  # the next one to come clears those that are over
    unrecovered = unrecovered_of(left_by(_notes(line, read), {entry.owner for entry in line.claims}))
    if not holders and not waiters and unrecovered is None:
        return None
    return LockView(name, capacity, tuple(holders), tuple(waiters), unrecovered)


def _notes(line: NodeQueue, read: Mapping[str, Node]) -> list[NodeNote]:
    found = (read_note(node, read[node][0]) for node in line.notes if node in read)
    return [note for note in found if note is not None]


def _claim(entry: QueueEntry, node: Node, capacity: int, held: bool, now: int) -> ClaimView:
    data, stat = node
    about = read_about(data)
    since: float = stat.ctime
    if not held:
        since += stat.czxid % 1_000_000 / 1_000_000  # within a millisecond, in the order of arrival
    elif "since" in about:
        since = about["since"]
    elif now - stat.ctime > CONFIRMED_BY_MS and about:
        since = now
    shared = entry.capacity == SHARED_CAPACITY and entry.weight == 1
    token = token_of(node) if held else None
    who = _holder(about, "read" if shared else "lock")
    return claim_view(entry, who, token, since / 1000, now / 1000, float(about.get("ttl", 0.0)), capacity)


def _tombstone(marker: Marker, node: Node, now: int) -> ClaimView:
    about, stat = read_about(node[0]), node[1]
    since = about.get("since", stat.ctime) / 1000
    remaining = max(0.0, stat.ctime / 1000 + marker.length - now / 1000)
    return claim_view(
        marker, _holder(about, "lock"), int(about.get("token", 0)), since, now / 1000, remaining, live=False
    )


def _holder(about: ClaimData, mode: str) -> HolderDetails:
    return HolderDetails(
        str(about.get("host", "")), int(about.get("pid", 0)), str(about.get("actor", "")), str(about.get("mode", mode))
    )
