"""The line of one name as a server keeps it, frozen: `holdfast._core.line` is what a program works on meanwhile.

`text` tells how the programs have written it (`scripts/forms.lua`): as text, which their short paths read, or packed.
A name where nobody stands has no line, only its mark: 16 digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from holdfast._core.line import Line, Place


@dataclass(frozen=True, slots=True)
class LineValue:
    capacity: int
    mark: int
    places: tuple[Place, ...]
    """Never changed: `thaw` copies them."""
    text: bool

    def thaw(self, line: Line) -> Line:
        line.capacity, line.mark, line.places = self.capacity, self.mark, [replace(place) for place in self.places]
        return line


def freeze(line: Line) -> LineValue:
    return LineValue(line.capacity, line.mark, tuple(line.places), _can_be_text(line))


def _can_be_text(line: Line) -> bool:
    """As `as_text` in forms.lua: a mutex whose holder has the last token, and stands before fair waiters only."""
    holder, *others = line.places
    if line.capacity != 1 or not holder.token or holder.token != line.mark or holder.evicted:
        return False
    return all(not place.token and place.fair for place in others)
