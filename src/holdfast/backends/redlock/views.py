"""Who holds what on a quorum: what a majority of nodes says with one voice."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ..._core.flow import Flow
from ...errors import BackendUnavailable
from ...model import ClaimView, LockView
from .keys import Keys
from .reading import read_holds
from .records import HeldRecord

if TYPE_CHECKING:
    from .backend import Quorum


def survey(quorum: Quorum, keys: Keys, prefix: str) -> Flow[list[LockView]]:
    """Each name with this prefix that a majority holds for the same owner and ballot, or keeps closed."""
    seen: dict[str, dict[tuple[str, str], list[HeldRecord]]] = defaultdict(lambda: defaultdict(list))
    answered = 0
    for node in range(len(quorum.nodes)):
        found = yield from read_holds(node, keys, prefix, quorum.request_timeout)
        if found is not None:
            answered += 1
            for key, hold in found[1].items():
                seen[key.removeprefix(keys.hold)][hold.ballot, hold.owner].append(hold)
    if answered < quorum.majority:
        raise BackendUnavailable(
            f"no majority to survey: {answered} of {len(quorum.nodes)} nodes answered, {quorum.majority} are needed"
        )
    return [
        LockView(name, 1, (_view(votes, quorum.majority),), ())
        for name, claims in sorted(seen.items())
        for votes in claims.values()
        if len(votes) >= quorum.majority
    ]


def _view(votes: list[HeldRecord], majority: int) -> ClaimView:
    """One claim, for as long as a majority stands by it."""
    hold = sorted(votes, key=lambda vote: -vote.left)[majority - 1]
    pid, host, mode, actor = (*hold.detail.split(" ", 3), "", "", "", "")[:4]
    token = int(hold.ballot)
    return ClaimView(
        owner=hold.owner,
        token=token,
        weight=1,
        host=host,
        pid=int(pid or 0),
        since=token / 1e6,
        remaining=max(0, hold.left - hold.delay if hold.live else hold.left) / 1000,
        actor=actor,
        mode=mode,
        live=hold.live,
    )
