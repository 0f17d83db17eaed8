"""What a codec remembers of the names that its coordinator has taken: it says with which statement a take begins.

1. A name where a quick statement was in vain is *busy* until one is granted at once: it is called for directly.
2. Of a name that this coordinator was granted last it is known which note its release leaves, unless somebody else was
   there: then the next take expects others there, too, until it finds that nobody was.

All names are forgotten when there are too many, which costs a statement in vain at most.
"""

from __future__ import annotations

from ...model import Predecessor

KEPT_COUNT = 1024


class RecentNames(set[str]):
    """Some names."""

    def add(self, name: str) -> None:
        if len(self) >= KEPT_COUNT:
            self.clear()
        super().add(name)


class TakenNames:
    """Names of a lock table."""

    def __init__(self) -> None:
        self.busy = RecentNames()
        self._own: dict[str, Predecessor] = {}
        """How the last grant to this coordinator ends, if it ends as it should."""
        self._shared = RecentNames()

    def expected(self, name: str) -> Predecessor | None:
        """How the last hold has ended, as far as is known."""
        return None if name in self._shared else self._own.get(name)

    def granted(self, name: str, owner: str, token: int, predecessor: Predecessor | None) -> None:
        """It was granted at once, and told this predecessor."""
        self.busy.discard(name)
        if (own := self._own.get(name)) is not None and own == predecessor:
            self._shared.discard(name)
        elif own is not None:
            self._shared.add(name)
        elif len(self._own) >= KEPT_COUNT:
            self._own.clear()
        self._own[name] = Predecessor(token, owner, "released")
