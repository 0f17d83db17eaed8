"""Real processes, paused and woken at named points. Nothing here sleeps: a stop is observed with waitpid.

A schedule says who runs how far, in order: "A>read B>read A>end B>end". A has the older token.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fenced.ledgers import balance, create

ROOT = Path(__file__).parent.parent.parent
ENDS = ("acked", "refused", "busy")


class Actor:
    """One process at work on one update at a time. It is always stopped at a point, or idle."""

    def __init__(self) -> None:
        self.ended = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fenced.actor"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def begin(self, kind: str, token: int, path: Path) -> None:
        """Give it an update to do; it stops at `born`."""
        assert self.process.stdin is not None
        self.ended = ""
        print(kind, token, path, file=self.process.stdin, flush=True)
        assert self._next() == "at born"

    def go(self, where: str) -> None:
        """Wake it until it stops at `where`, or is done."""
        news = ""
        while not self.ended and news != f"at {where}":
            os.kill(self.process.pid, signal.SIGCONT)
            news = self._next()
            self.ended = news if news in ENDS else ""

    def kill(self) -> None:
        """Kill it where it stands."""
        self.process.kill()
        self.process.wait()

    def _next(self) -> str:
        assert self.process.stdout is not None
        news = self.process.stdout.readline().rstrip("\n")
        assert news, f"the actor ended with {self.process.wait()}"
        if news.startswith("at "):
            _, status = os.waitpid(self.process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
        return news


@contextmanager
def actors() -> Iterator[tuple[Actor, Actor]]:
    """Two processes, gone at the end however the test ends."""
    pair = (Actor(), Actor())
    try:
        yield pair
    finally:
        for actor in pair:
            with actor.process:  # closes the pipes and waits
                actor.process.kill()


@dataclass(frozen=True, slots=True)
class Played:
    """How the two updates ended, and what is in the ledger."""

    a: str
    b: str
    balance: int

    @property
    def lost(self) -> int:
        """How many acknowledged updates are not in the ledger."""
        return (self.a, self.b).count("acked") - self.balance


def play(kind: str, schedule: str, pair: tuple[Actor, Actor], path: Path) -> Played:
    """Both update the ledger by the schedule, and then to their ends."""
    create(kind, str(path))
    cast = dict(zip("AB", pair, strict=True))
    for token, actor in enumerate(pair, start=1):
        actor.begin(kind, token, path)
    for step in [*schedule.split(), "A>end", "B>end"]:
        name, _, where = step.partition(">")
        cast[name].go(where)
    return Played(pair[0].ended, pair[1].ended, balance(kind, str(path)))
