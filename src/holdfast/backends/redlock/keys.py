"""The names of what is kept at each node (see `scripts/marks.lua`)."""

from __future__ import annotations


class Keys:
    """All begin with the namespace and a slash, so that a user of the server can be confined to them."""

    __slots__ = ("hold", "marks", "trace")

    def __init__(self, namespace: str) -> None:
        self.marks = f"{namespace}/marks"
        self.hold = f"{namespace}/hold/"
        self.trace = f"{namespace}/trace/"

    def channel(self, listens: str) -> str:
        """Where the client of this word is told that it is somebody's turn."""
        return f"{self.marks}/{listens}"

    def trace_of(self, hold: str) -> str:
        return self.trace + hold.removeprefix(self.hold)


def glob(text: str) -> str:
    """A pattern of what begins with this text."""
    return "".join(f"\\{c}" if c in "*?[]^\\" else c for c in text) + "*"
