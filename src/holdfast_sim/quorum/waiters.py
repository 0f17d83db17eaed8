"""The sorted sets in which a node keeps who waits (`scripts/turns.lua`)."""

from __future__ import annotations

from typing import Protocol


class Scored(Protocol):
    """A sorted set of texts."""

    def first(self) -> str | None: ...

    def rank(self, member: str) -> int: ...

    def score(self, member: str) -> int | None: ...

    def add(self, member: str, score: int) -> None: ...

    def remove(self, member: str) -> int: ...

    def remove_until(self, score: int) -> None: ...

    def keep(self, ms: int) -> None:
        """It ends by itself so long from now."""

    def __len__(self) -> int: ...

    def above(self, score: int) -> list[str]: ...


class ScoredTexts(dict[str, int]):
    """The same in memory; it need not end by itself, as those who wait are counted out one by one."""

    def _order(self) -> list[str]:
        return sorted(self, key=lambda member: (self[member], member))

    def first(self) -> str | None:
        return min(self, key=lambda member: (self[member], member), default=None)

    def rank(self, member: str) -> int:
        return self._order().index(member)

    def score(self, member: str) -> int | None:
        return self.get(member)

    def add(self, member: str, score: int) -> None:
        self[member] = score

    def remove(self, member: str) -> int:
        return int(self.pop(member, None) is not None)

    def remove_until(self, score: int) -> None:
        for member in [member for member in self if self[member] <= score]:
            del self[member]

    def keep(self, ms: int) -> None:
        pass

    def above(self, score: int) -> list[str]:
        return [member for member in self._order() if self[member] > score]
