"""A request to all nodes at once, and what they said.

A node's word is 1 (yes), 0 (no), text (no, and why), or None: it did not answer, or its answer was not waited for. None
may be a yes. `A` is the word of a node that has lost its memory: it has no vote, and nothing to undo.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, TypeVar

from ..._core.flow import RequestFlow

Said: TypeAlias = int | bytes | None
Parts: TypeAlias = tuple[str, str]


class Until(Enum):
    """When a request to many has been answered."""

    DECIDED = "a majority has said yes, or can no longer do so"
    HEARD = "as DECIDED; but before a no, all who answer soon are heard: they have nothing to be undone"
    KEPT = "a majority has said yes, or everybody has answered"
    EVERYBODY = "everybody has answered"
    SENT = "it has left; replies are of no interest"


DECIDED, HEARD, KEPT, EVERYBODY, SENT = Until.DECIDED, Until.HEARD, Until.KEPT, Until.EVERYBODY, Until.SENT


class Fanout:
    """One call of a program, to all nodes or to `only` one. `dial`: connect to those that are missing first.

    `parts` is how the call is written around its first key and its last argument, if that is known (`programs.parts`).
    `gone` is an owner that waits no longer.
    """

    __slots__ = ("args", "dial", "gone", "keys", "only", "parts", "until", "verb")

    def __init__(
        self,
        verb: str,
        keys: tuple[str, ...],
        args: tuple[str, ...],
        until: Until,
        only: int | None = None,
        dial: bool = False,
        parts: Parts | None = None,
        gone: str = "",
    ) -> None:
        self.verb = verb
        self.keys = keys
        self.args = args
        self.until = until
        self.only = only
        self.dial = dial
        self.parts = parts
        self.gone = gone


T = TypeVar("T")
FanoutFlow: TypeAlias = RequestFlow[Fanout, T]


@dataclass(slots=True)
class Trouble:
    """Why a node did not answer."""

    node: str
    why: str


class Tally:
    """Counts what the nodes say; the reply to a `Fanout`.

    A no is final only once a majority has voted: fewer cannot tell a lock that is held from nodes that are gone.
    """

    __slots__ = ("ailing", "left", "need", "said", "trouble", "unsent", "until", "voted", "yes")

    def __init__(self, until: Until, nodes: int, asked: int, need: int) -> None:
        self.until = until
        self.need = need
        self.left = asked
        """Of whom nothing was heard, and nothing was given up."""
        self.yes = 0
        self.voted = 0
        self.said: list[Said] = [None] * nodes
        self.trouble: list[Trouble] = []
        self.unsent: set[int] = set()
        """Nodes that were not even asked: there is nothing to be undone at them."""
        self.ailing = False
        """A node is out of reach, or has lost its memory: somebody should look after it."""

    def add(self, node: int, said: Said) -> bool:
        """A node's word. Answers whether the request is answered."""
        self.left -= 1
        self.said[node] = said
        if said == 1:
            self.yes += 1
            self.voted += 1
        elif said == b"A":
            self.ailing = True
        else:
            self.voted += 1
        return self.done()

    def miss(self, node: str, why: str) -> bool:
        """A node that does not answer."""
        self.left -= 1
        self.trouble.append(Trouble(node, why))
        return self.done()

    def ask_again(self, node: str) -> None:
        """One that did not answer is being asked once more."""
        self.left += 1
        self.trouble = [each for each in self.trouble if each.node != node]

    def decided(self) -> bool:
        if self.yes >= self.need or not self.left:
            return True
        return self.yes + self.left < self.need <= self.voted

    def done(self) -> bool:
        """Whether it is answered; with `HEARD`, by everybody who was asked."""
        until = self.until
        if until is DECIDED:
            return self.decided()
        if until is KEPT or until is HEARD:
            return self.yes >= self.need or not self.left
        return not self.left
