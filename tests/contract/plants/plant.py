"""A bug to plant: a mistake that somebody has made, as a patch of our own code, and the promises that must notice.

All are planted into the reference engine and played with tasks, in no time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import pytest

from holdfast.testing import Venue, memory_venue

MakeVenue = Callable[[], Venue | AbstractContextManager[Venue]]
Patch = Callable[[pytest.MonkeyPatch], object]
PLANTS: list[Plant] = []


@dataclass(frozen=True, slots=True)
class Plant:
    """`notices` are the promises that must fail."""

    bug: str
    patch: Patch
    notices: tuple[str, ...]
    make_venue: MakeVenue = memory_venue
    slips: bool = False
    """It may show as any error: bad input that is let through breaks things anywhere."""

    def venue(self) -> AbstractContextManager[Venue]:
        venue = self.make_venue()
        return nullcontext(venue) if isinstance(venue, Venue) else venue


def plant(*notices: str, venue: MakeVenue = memory_venue, slips: bool = False) -> Callable[[Patch], None]:
    """Have a bug planted, and these promises played."""

    def register(patch: Patch) -> None:
        PLANTS.append(Plant(patch.__name__, patch, notices, venue, slips))

    return register
