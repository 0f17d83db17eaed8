"""The line of one name as a server keeps it, frozen: `holdfast._core.line` is what a program works on meanwhile.

A name where nobody stands has no line, only its mark, 16 digits, and how the last hold ended.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast._core.line import Ended, Place


@dataclass(frozen=True, slots=True)
class LineValue:
    """`hashed` tells how the programs keep it (`scripts/forms.lua`): one holder as a string, or all else as a hash."""

    capacity: int
    mark: int
    places: tuple[Place, ...]
    """Never changed: whoever works on them copies them. `rank` counts the claims in the order in which they came."""
    hashed: bool = False
    ranks: int = 1
    kept_us: int = 0
    """Until then a hash stands, whatever is in it."""
    noted_us: int = 0
    """Until then its name is among those for which somebody waits."""
    last: Ended | None = None
