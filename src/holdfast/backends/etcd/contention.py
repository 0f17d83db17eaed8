"""Which names others want, too, as far as this coordinator has seen: only how a take is asked depends on it."""

from __future__ import annotations

from collections.abc import Sequence

from .claim_state import ClaimState
from .sessions import Sessions

SHORT_LINE_COUNT = 20
"""A line of so many is looked at along with a take."""
MOST_NAMES_COUNT = 1000
"""So many names are remembered."""


class Contention:
    """Of one coordinator."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._met: dict[str, int] = {}
        """Names that somebody else wants, and how long their lines were last."""

    def is_likely(self, name: str) -> bool:
        """Whether somebody was met there lately, or this very coordinator wants it more than once."""
        return name in self._met or len(self._sessions.by_name.get(name, ())) > 1

    def is_long(self, name: str) -> bool:
        """Whether to see a line would cost etcd more than to ask once more."""
        return max(self._met.get(name, 0), len(self._sessions.by_name.get(name, ()))) > SHORT_LINE_COUNT

    def note(self, states: Sequence[ClaimState], count: int) -> None:
        """Somebody else wants these names too: the next take of theirs may have to wait, in a line of so many."""
        if len(self._met) > MOST_NAMES_COUNT:
            self._met.clear()
        self._met |= {each.claim.spec.name: count for each in states}

    def forget(self, name: str) -> None:
        """Nobody was there."""
        self._met.pop(name, None)
