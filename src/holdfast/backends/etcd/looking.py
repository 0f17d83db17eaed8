"""Who holds what, and by hand: survey, evict, ask. All of it reads, or writes beside the line; no waiter is woken by it
but the one whose turn it becomes.

etcd tells how long a lease has left in whole seconds, rounded down: `remaining` is good to half a second, and not asked
for where nobody looks at it (a check of a sequencer is one read).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from ..._core.flow import Call, Flow
from ...errors import BackendUnavailable
from ...model import ClaimView, LockView
from .keys import Keys
from .places import Line, Place, judge, read_all
from .rpc import Answer, Rejected, Replies, changed_at, created_at, delete, get, grant_lease, put, time_to_live, txn
from .session import new_session, whole

SECOND = 1_000_000
AT_ONCE = 100
TRIES = 5


def survey(
    keys: Keys, prefix: str, exact: bool, contended: bool, calendar_us: Callable[[], int], timeout: float
) -> Flow[list[LockView]]:
    lines = yield from read_lines(keys, prefix, exact, timeout)
    if contended:
        lines = {name: line for name, line in lines.items() if line.waiting}
    left: dict[int, float] = {}
    if not exact and not contended:
        leases = {place.lease for line in lines.values() for place in (*line.holding, *line.waiting, *line.ghosts)}
        left = yield from _left(sorted(leases), timeout)
    now = calendar_us()
    return [_view(name, line, left, now) for name, line in lines.items()]


def read_lines(keys: Keys, prefix: str, exact: bool, timeout: float) -> Flow[dict[str, Line]]:
    """All lines of names with this prefix, in one read."""
    reply: Answer | Rejected
    [reply] = yield Call((txn((), [get(*(keys.line(prefix) if exact else keys.lines(prefix)))]),), timeout)
    if isinstance(reply, Rejected):
        raise BackendUnavailable(f"etcd refused a look: {reply.message}")
    places = read_all(reply["responses"][0])
    standing = _by_name(place for place in places if not place.ghost)
    haunting = _by_name(place for place in places if place.ghost)
    lines = {name: judge(standing.get(name, ()), haunting.get(name, ())) for name in sorted({*standing, *haunting})}
    return {name: line for name, line in lines.items() if line.holding or line.waiting or line.ghosts}


def _by_name(places: Iterable[Place]) -> dict[str, list[Place]]:
    ordered = sorted(places, key=lambda place: (place.name, place.created))
    return {name: list(group) for name, group in groupby(ordered, key=lambda place: place.name)}


def _left(leases: Sequence[int], timeout: float) -> Flow[dict[int, float]]:
    """Seconds that each lease has left."""
    left: dict[int, float] = {}
    for start in range(0, len(leases), AT_ONCE):
        batch = leases[start : start + AT_ONCE]
        replies: Replies = yield Call(tuple(map(time_to_live, batch)), timeout)
        for lease, reply in zip(batch, replies, strict=True):
            if not isinstance(reply, Rejected):
                left[lease] = max(0.0, int(reply.get("TTL", 0)) + 0.5)
    return left


def _view(name: str, line: Line, left: dict[int, float], now: int) -> LockView:
    holders = [_claim(place, left, _since(place, line, now), now) for place in line.holding]
    holders += [_claim(ghost, left, int(ghost.value["s"]), now, live=False) for ghost in line.ghosts]
    waiters = [_claim(place, left, int(place.value["s"]), now, token=False) for place in line.waiting]
    return LockView(name, line.capacity, tuple(holders), tuple(waiters))


def _since(place: Place, line: Line, now: int) -> int:
    """Since when it holds. Who held at once, or has said so, is believed; in a mutex's line everybody else has waited,
    and is saying so at this moment."""
    since = int(place.value["s"])
    return max(since, now) if line.capacity == 1 and not place.granted else since


def _claim(
    place: Place, left: dict[int, float], since: int, now: int, live: bool = True, token: bool = True
) -> ClaimView:
    value = place.value
    return ClaimView(
        owner=place.owner,
        token=place.token if token else None,
        weight=place.weight,
        host=value["h"],
        pid=value["p"],
        since=since / SECOND,
        remaining=min(left.get(place.lease, float(value["t"])), float(value["t"]) if live else float("inf")),
        actor=value["a"],
        mode=value["m"],
        live=live,
        age=max(0, now - since) / SECOND,
    )


def evict(keys: Keys, name: str, token: int, timeout: float) -> Flow[bool]:
    """End a hold, with a note for its owner; its delay, if it has one, begins now."""
    for _ in range(TRIES):
        lines = yield from read_lines(keys, name, True, timeout)
        held = [place for place in lines[name].holding if place.token == token] if name in lines else []
        if not held:
            return False
        [place] = held
        rpcs = []
        ops = [delete(place.key), put(keys.note(place.owner), "evicted", place.lease)]
        delay = float(place.value.get("d", 0))
        if delay:
            ghost = yield from new_session(delay, sole=True)
            rpcs.append(grant_lease(ghost.lease, whole(delay)))
            words = {key: word for key, word in place.value.items() if key not in "go"} | {"k": token}
            ops.append(put(keys.ghost(name, place.owner), json.dumps(words), ghost.lease))
        rpcs.append(txn([changed_at(place.key, place.changed)], ops))
        replies: Replies = yield Call(tuple(rpcs), timeout)
        reply = replies[-1]
        if not isinstance(reply, Rejected) and reply.get("succeeded"):
            return True
    return False


def ask(keys: Keys, name: str, token: int | None, timeout: float) -> Flow[int]:
    """Leave word for holders; it hangs on the lease of the one it is for, who sees it at its next renewal."""
    lines = yield from read_lines(keys, name, True, timeout)
    asked = 0
    for place in lines[name].holding if name in lines else ():
        if token is None or place.token == token:
            word = txn([created_at(place.key, place.created)], [put(keys.ask(place.owner), "asked", place.lease)])
            reply: Answer | Rejected
            [reply] = yield Call((word,), timeout)
            asked += not isinstance(reply, Rejected) and bool(reply.get("succeeded"))
    return asked
