"""A line as others see it.

1. Since when a hold is held says its node's data, once it is confirmed (see `places`). One that is neither confirmed
   nor brand-new has come to its turn in this very moment.
2. Whose data tells a token holds. Of the others those hold whose turn it is, beside them. Seats are not looked at: they
   are taken first, and kept or given back afterwards (see `line`, rule 2); who keeps one writes its token down before
   it holds.
3. For how long a hold is good nobody else can know: what is shown is the longest it can be without a word of
   its owner.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...model import SHARED_CAPACITY, ClaimView, LockView
from .jute import Stat
from .line import Picture, granted_of
from .paths import Entry, Trace
from .places import read_about

CONFIRMED_BY = 300
"""A hold is confirmed before it is so many milliseconds old."""

Node = tuple[bytes, Stat]


def token_of(node: Node) -> int:
    """The token of a claim, if it holds."""
    told = read_about(node[0]).get("token")
    return told if isinstance(told, int) else node[1].czxid


def holders_of(picture: Picture, read: Mapping[str, Node]) -> set[str]:
    """The owners that hold."""
    told = {entry.owner for entry in picture.claims if "token" in read_about(read[entry.node][0])}
    return granted_of(picture, told)


def view_of(name: str, picture: Picture, read: dict[str, Node], now: int) -> LockView | None:
    """None if nothing is there. `now` is in milliseconds of the server's calendar."""
    capacity = picture.capacity or 1
    holding = holders_of(picture, read)
    now = max(now, *(stat.mtime for _, stat in read.values()))
    holders: list[ClaimView] = []
    waiters: list[ClaimView] = []
    for entry in picture.claims:
        if entry.node in read and entry.capacity in (capacity, 0):
            held = entry.owner in holding
            (holders if held else waiters).append(_claim(entry, read[entry.node], capacity, held, now))
    ghosts = [_ghost(trace, read[trace.node], now) for trace in picture.ghosts if trace.node in read]
    orphans = [will for will in picture.orphans if will.node in read]
    ghosts += [_ghost(will, read[will.node], read[will.node][1].ctime) for will in orphans]
    holders += [ghost for ghost in ghosts if ghost.remaining]  # the next one to come clears those that are over
    if not holders and not waiters:
        return None
    return LockView(name, capacity, tuple(holders), tuple(waiters))


def _claim(entry: Entry, node: Node, capacity: int, held: bool, now: int) -> ClaimView:
    data, stat = node
    about = read_about(data)
    since: float = stat.ctime
    if not held:
        since += stat.czxid % 1_000_000 / 1_000_000  # within a millisecond, in the order of arrival
    elif "since" in about:
        since = about["since"]
    elif now - stat.ctime > CONFIRMED_BY and about:
        since = now
    shared = entry.capacity == SHARED_CAPACITY and entry.weight == 1
    return ClaimView(
        owner=entry.owner,
        token=token_of(node) if held else None,
        weight=entry.weight or capacity,
        host=str(about.get("host", "")),
        pid=int(about.get("pid", 0)),
        since=since / 1000,
        remaining=float(about.get("ttl", 0.0)),
        actor=str(about.get("actor", "")),
        mode=str(about.get("mode", "read" if shared else "lock")),
        age=max(0.0, now - since) / 1000,
    )


def _ghost(trace: Trace, node: Node, now: int) -> ClaimView:
    data, stat = node
    about = read_about(data)
    since: float = about.get("since", stat.ctime)
    return ClaimView(
        owner=trace.owner,
        token=int(about.get("token", 0)),
        weight=trace.weight,
        host=str(about.get("host", "")),
        pid=int(about.get("pid", 0)),
        since=since / 1000,
        remaining=max(0.0, stat.ctime / 1000 + trace.length - now / 1000),
        actor=str(about.get("actor", "")),
        mode=str(about.get("mode", "lock")),
        live=False,
        age=max(0.0, now - since) / 1000,
    )
