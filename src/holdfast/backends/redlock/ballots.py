"""Which ballot comes next, and what is under way with which.

A ballot is the calendar in microseconds, or one more than the highest that this client has seen for the name or used in
this round: the calendar only decides how often a second round is needed. It is a lower bound, never a measure of time.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import BackendUnavailable
from ...model import Claim
from .fanout import Tally
from .records import HIGHEST_NUMBER

KNOWN_COUNT = 1024
"""Names whose mark is ahead of our calendar, and rounds that were left without a word: so many are kept."""


class Round:
    """What one owner has under way. `claim`: its text at a node, but for the ballot; `span`: how long, in ms."""

    __slots__ = ("ballot", "claim", "clean", "ending", "expires", "place", "renewed", "since", "span", "tries")

    def __init__(self, claim: str, span: str) -> None:
        self.ballot = 0
        self.claim = claim
        self.span = span
        self.tries = 0
        self.since = 0
        """Since when others see it waiting, by its own calendar in µs; 0 if they never did."""
        self.place = 0
        """Where in line it waits: the highest mark that it met first (see `scripts/turns.lua`)."""
        self.clean = True
        """Nothing of it can be at any node."""
        self.expires = 0.0
        self.renewed = False
        self.ending = False
        """An extension may be on its way; a release is. Each is set before the other is read: one of them knows."""


class Ballots:
    """The rounds of one client."""

    def __init__(self, calendar_us: Callable[[], int]) -> None:
        self._calendar_us = calendar_us
        self._ahead: dict[str, int] = {}
        self._rounds: dict[str, Round] = {}
        self._sweep_at = KNOWN_COUNT

    def next(self, name: str, round_: Round, now: float, ttl: float) -> int:
        """A new ballot for a round."""
        ballot = self._calendar_us()
        if self._ahead:
            seen = self._ahead.get(name, 0)
            if seen >= ballot:
                ballot = seen + 1
        if round_.ballot >= ballot:
            ballot = round_.ballot + 1
        if ballot > HIGHEST_NUMBER:
            raise BackendUnavailable(
                f"the tokens of {name!r} are used up: a client whose calendar was far in the future has raised them to "
                f"{ballot}; use another name or namespace"
            )
        round_.ballot = ballot
        round_.clean = False
        round_.expires = now + ttl
        return ballot

    def extend(self, round_: Round, token: int, until: float) -> bool:
        """A round that was granted is about to be extended. False if it is about to be released."""
        round_.renewed = True
        if round_.ending:
            return False
        round_.ballot = token or round_.ballot
        round_.expires = until
        return True

    def note(self, name: str, mark: int) -> None:
        """A mark was seen: the next ballot goes above it."""
        if mark > self._ahead.get(name, 0):
            if len(self._ahead) >= KNOWN_COUNT:
                self._ahead.pop(next(iter(self._ahead)), None)
            self._ahead[name] = mark

    def read(self, name: str, tally: Tally) -> tuple[int, int]:
        """How many said that the ballot was too low for a name that is free, and that they have no memory."""
        low = lost = 0
        for said in tally.said:
            if isinstance(said, bytes):
                if said == b"A":
                    lost += 1
                    continue
                self.note(name, int(said[1:21]))
                low += said[:1] == b"M"
        return low, lost

    def begin(self, claim: Claim, round_: Round, now: float) -> Round:
        """The first round of an owner."""
        if len(self._rounds) >= self._sweep_at:
            self._sweep(now)
        self._rounds[claim.owner] = round_
        return round_

    def find(self, claim: Claim) -> Round | None:
        return self._rounds.get(claim.owner)

    def end(self, claim: Claim) -> None:
        self._rounds.pop(claim.owner, None)

    def _sweep(self, now: float) -> None:
        """Forget owners that could not be released and are over by themselves."""
        for owner, round_ in list(self._rounds.items()):
            if round_.expires < now:
                self._rounds.pop(owner, None)
        self._sweep_at = max(KNOWN_COUNT, 2 * len(self._rounds))


def opens_in(tally: Tally) -> float:
    """In how many seconds a majority may be free, as far as the nodes told."""
    waits = sorted(int(said[21:].partition(b" ")[0]) for said in _refusals(tally))
    spare = len(tally.said) - tally.need
    return waits[-1 - spare] / 1000 if len(waits) > spare else 0.0


def rank_in(tally: Tally) -> int:
    """How many wait before it, as far as the nodes told."""
    return max((int(said.rpartition(b" ")[2]) for said in _refusals(tally)), default=0)


def is_split(tally: Tally) -> bool:
    """Whether several have parts of it: nobody who was refused has met one mark at a majority."""
    marks = [said[1:21] for said in _refusals(tally)]
    return all(marks.count(mark) < tally.need for mark in set(marks))


def place_in(tally: Tally) -> int:
    """The highest mark that it met."""
    return max((int(said[1:21]) for said in _refusals(tally)), default=0)


def _refusals(tally: Tally) -> list[bytes]:
    return [said for said in tally.said if isinstance(said, bytes) and said[:1] == b"H"]
