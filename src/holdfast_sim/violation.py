"""The error that a broken invariant raises."""

from __future__ import annotations


class Violation(BaseException):
    """An invariant does not hold. Not an `Exception`: nothing under test may catch it."""

    def __init__(self, invariant: str, story: str) -> None:
        self.invariant = invariant
        self.story = story
        super().__init__(f"{invariant}: {story}")
