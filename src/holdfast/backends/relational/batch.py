"""Requests of many who wait in one coordinator, and what both engines reply to them in the same words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...model import Claim
from ..execute import SECOND_US
from ..queue_backend import Taken
from .replies import Pushes, pushes_of

NUMBERS_COUNT = 5


@dataclass(slots=True)
class LookAll:
    """Keep the places of these, as a take of each would that finds it waiting. Reply: `Looked`."""

    claims: Sequence[Claim]


@dataclass(slots=True)
class LeaveAll:
    """Release these, without lingering; whoever may follow is granted when all have left. Reply: `Left`."""

    claims: Sequence[Claim]


class Looked(NamedTuple):
    """For each what a take would have replied; None: it has to ask by itself. And who was granted by that, in here."""

    taken: Sequence[Taken | None]
    pushes: Pushes = ()


class Left(NamedTuple):
    """For each whether it was held until now. And who was granted by that, in here."""

    held: Sequence[bool]
    pushes: Pushes = ()


def looked_of(said: bytes) -> Looked:
    listed, *told = said.split()
    numbers = [*map(int, listed.split(b","))]
    return Looked(
        [_looked(*numbers[at : at + NUMBERS_COUNT]) for at in range(0, len(numbers), NUMBERS_COUNT)], pushes_of(told)
    )


def _looked(token: int, look_again: int, ahead: int, capacity: int, mark: int) -> Taken | None:
    """The numbers are those of a take that was not granted."""
    return Taken(0, look_again / SECOND_US, ahead, mark=mark) if look_again else None


def left_of(said: bytes, yes: bytes) -> Left:
    held, *told = said.split()
    return Left([letter == yes[0] for letter in held], pushes_of(told))
