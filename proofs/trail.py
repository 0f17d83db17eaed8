"""A counterexample as a story.

The model keeps rounds, nodes and numbers sorted and squeezed, so what it calls slot 0, node 2 or ballot 1 changes from
step to step. It prints each renaming with a '#'; this follows them, and gives everything one name for the whole story.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .variants import BITS, PROMISES

EVENT = re.compile(r"^\s*((?:slot|node|all nodes|BROKEN)\b.*|# (?:insert|squeeze|slots|nodes|incarnations) .*)$")
STEP = 100
LETTERS = {bit: letter for letter, bit in BITS.items()}


@dataclass
class Names:
    """`numbers`: what a rank stands for; empty where the model's numbers are plain."""

    plain: bool
    clients: dict[int, str] = field(default_factory=dict)
    nodes: list[int] = field(default_factory=lambda: [1, 2, 3, 4, 5])
    numbers: list[int] = field(default_factory=lambda: [0])
    earlier: dict[int, int] = field(default_factory=dict)
    begun: int = 0

    def rename(self, word: str, a: int, b: int) -> None:
        """One '#' line."""
        if word == "insert":
            above = self.numbers[a + 1] if a + 1 < len(self.numbers) else self.numbers[a] + 2 * STEP
            self.numbers.insert(a + 1, (self.numbers[a] + above) // 2)
        elif word == "squeeze":
            del self.numbers[a]
        elif word == "slots":
            self.clients[a], self.clients[b] = self.clients.get(b, ""), self.clients.get(a, "")
        elif word == "nodes":
            self.nodes[a], self.nodes[b] = self.nodes[b], self.nodes[a]
        else:
            self.earlier[self.nodes[a]] = self.earlier.get(self.nodes[a], 0) + b

    def number(self, rank: int) -> int:
        return rank if self.plain else self.numbers[rank]

    def begin(self, text: str) -> None:
        """A round that begins gets a letter; one that goes on under the same owner, its owner's."""
        if again := re.match(r"slot (\d+) (?:goes on|comes back) as slot (\d+)", text):
            self.clients[int(again[2])] = self.clients[int(again[1])] + "'"
        elif fresh := re.match(r"slot (\d+) begins", text):
            self.clients[int(fresh[1])] = chr(ord("A") + self.begun)
            self.begun += 1

    def tell(self, text: str) -> str:
        """One event, in the names of the story."""
        self.begin(text)
        if subject := re.match(r"node (\d+) will come back as incarnation (\d+)", text):
            node = self.nodes[int(subject[1])]
            return f"node {node} will come back as incarnation {int(subject[2]) + self.earlier.get(node, 0)}"
        text = re.sub(r"slot (\d+)", lambda m: self.clients[int(m[1])], text)
        text = re.sub(r"node (\d+)", lambda m: f"node {self.nodes[int(m[1])]}", text)
        return re.sub(r"(ballot|token|mark) (\d+)", lambda m: f"{m[1]} {self.number(int(m[2]))}", text)


def story(lines: Iterable[str], plain: bool) -> Iterator[str]:
    """The events of a replay, numbered, and the promise that breaks."""
    names = Names(plain)
    count = 0
    for line in lines:
        if (found := EVENT.match(line)) is None:
            continue
        text = found[1]
        if text.startswith("# "):
            word, *figures = text[2:].split()
            names.rename(word, int(figures[0]), int(figures[-1]))
        elif text.startswith("BROKEN"):
            letter = LETTERS[int(text.split()[1])]
            yield f"    {letter} {PROMISES[letter]}"
            return
        else:
            count += 1
            yield f"{count:3} {names.tell(text)}"


def broken(lines: Iterable[str]) -> str:
    """The letter of the promise that breaks in a replay."""
    return next((LETTERS[int(line.split()[1])] for line in lines if line.strip().startswith("BROKEN")), "?")
