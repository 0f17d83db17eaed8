"""Who holds what on a quorum: what a majority of nodes says with one voice."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ..._core.flow import Flow
from ...errors import BackendUnavailable
from ...model import ClaimView, LockView
from .mending import glob, survey_chunk
from .records import NOBODY, Record

if TYPE_CHECKING:
    from .backend import Quorum


def survey(quorum: Quorum, memory: str, keys: str, prefix: str) -> Flow[list[LockView]]:
    """Each name with this prefix that a majority holds for the same owner and ballot, or keeps closed."""
    seen: dict[str, dict[tuple[str, str], list[tuple[int, Record]]]] = defaultdict(lambda: defaultdict(list))
    answered = 0
    for node in range(len(quorum.nodes)):
        cursor, found = "0", list[tuple[str, Record, int]]()
        while True:
            chunk = yield from survey_chunk(memory, node, cursor, glob(keys + prefix) + "*")
            if chunk is None:
                break
            cursor, clock, _, held = chunk
            found += [(key, record, clock) for key, record in held.items()]
            if cursor == "0":
                answered += 1
                for key, record, at in found:
                    seen[key.removeprefix(keys)][record.ballot, record.owner].append((at, record))
                break
    if answered < quorum.majority:
        raise BackendUnavailable(
            f"no majority to survey: {answered} of {len(quorum.nodes)} nodes answered, {quorum.majority} are needed"
        )
    return [
        LockView(name, 1, (_view(votes),), ())
        for name, claims in sorted(seen.items())
        for votes in claims.values()
        if len(votes) >= quorum.majority
    ]


def _view(votes: list[tuple[int, Record]]) -> ClaimView:
    """One claim, as the majority will first agree that it is over."""
    votes = sorted(votes, key=lambda vote: vote[1].closed - vote[0])
    clock, record = votes[len(votes) // 2]
    pid, host, mode, actor = (*record.detail.split(" ", 3), "", "", "", "")[:4]
    live = record.ballot != NOBODY and record.until > clock
    return ClaimView(
        owner=record.owner,
        token=int(record.ballot) or int(record.mark),
        weight=1,
        host=host,
        pid=int(pid or 0),
        since=record.since / 1e6,
        remaining=max(0, (record.until if live else record.closed) - clock) / 1e6,
        actor=actor,
        mode=mode,
        live=live,
    )
