"""Something that a client waits for to be committed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..model import Timer
from .auth import Identity
from .commands import Command
from .state import Outcome


@dataclass(eq=False, slots=True)
class Proposal:
    """Something that is to be committed."""

    number: int
    origin: int
    command: Command
    who: Identity
    answer: Callable[[Outcome], None]
    blocked: bool
    """No leader is known: it has not been sent yet."""
    begun: float
    timer: Timer | None = None
