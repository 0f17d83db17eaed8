"""Granted by the end of another claim, without another look: what a waiter may conclude from what it hears.

1. It has looked, and has listened since then, without a gap, for the end of the claim before it and for its own end.
   The engine tells of both in the order in which they happened. So if the other's end is told, and its own is not told
   before, its own claim stood when the other ended.
2. If the other held when it ended, nobody stood before it, and nobody comes in before anybody: the waiter holds now. Of
   one that merely gave up its place, or died while it waited, the end is only a reason to look.
3. That the other held is seen by the look (it was the first), heard later (it writes it down, or says so when it lets
   go), or known here, of a claim of the same coordinator. Once it holds it does until its end.
4. The grant counts from the last proof that the waiter's own session lives, and not from what was heard. Where that
   proof is too old, it looks as everybody else.
"""

from __future__ import annotations

HANDED = "handed"
"""What was waited for has happened: the claim holds."""
LOOK = "look"
"""Something has happened; a look will tell."""


class Handoff:
    """One waiter's: `own` and `before` are the keys of its claim and of the one before it."""

    __slots__ = ("before", "gone", "holds", "own")

    def __init__(self, own: str, before: str, holds: bool = False) -> None:
        self.own = own
        self.before = before
        self.holds = holds
        """The claim before it is known to hold."""
        self.gone = False
        """Its own claim has ended, or may have."""

    def hear_end(self, key: str) -> str | None:
        """The verdict on the end of this key; None if it is about neither."""
        if key == self.own:
            self.gone = True
        if self.gone:
            return LOOK
        if key == self.before:
            return HANDED if self.holds else LOOK
        return None
