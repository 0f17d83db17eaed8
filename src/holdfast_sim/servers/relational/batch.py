"""What the statements for many claims do (`schema/batches.sql` of both engines), to lines of the reference.

Claims are names and owners. Whoever is promoted is answered as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from holdfast._core.line import Place
from holdfast.backends.execute import SECOND_US, Lines
from holdfast.backends.queue_backend import Taken

Claims: TypeAlias = Sequence[tuple[str, str]]


def look_all(lines: Lines, claims: Claims, wake: str, now: int) -> tuple[list[Taken | None], list[Place]]:
    """Keep the places of those who wait; None for all others."""
    found = {name: lines.load(name) for name, _ in claims}
    promoted: list[Place] = []
    for line in found.values():
        line.sweep(now)
        promoted += line.promote(now, now)
    taken: list[Taken | None] = []
    for name, owner in claims:
        line = found[name]
        place = line.find(owner)
        if place is None or place.token:
            taken.append(None)
            continue
        place.expires, place.wake = now + place.patience, wake
        taken.append(Taken(0, line.look_again(place, now) / SECOND_US, line.ahead(place, now), mark=line.mark))
    for name, line in found.items():
        lines.save(name, line)
    return taken, promoted


def leave_all(lines: Lines, claims: Claims, now: int) -> tuple[list[bool], list[Place]]:
    """Take all of them out, and then promote."""
    found = {name: lines.load(name) for name, _ in claims}
    for line in found.values():
        line.sweep(now)
    held = []
    for name, owner in claims:
        place = found[name].find(owner)
        held.append(place is not None and place.holds(now))
        if place is not None:
            found[name].leave(place, now)
    promoted: list[Place] = []
    for name, line in found.items():
        promoted += line.promote(now, now)
        lines.save(name, line)
    return held, promoted
