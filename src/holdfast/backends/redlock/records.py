"""What a node keeps, read and written as text of fixed widths (see `scripts/marks.lua` and `scripts/hello.lua`)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from ...model import Claim

NOBODY = "0" * 20
HIGHEST_NUMBER = 2**53 - 1
"""The highest ballot that a node can keep: the year 2255."""
LISTENS_DIGITS_COUNT = 8
"""Of the word by which a client is known where it listens."""
TRACE_KEPT = "86400000"
"""For how long a node knows whose hold ran out there, in ms."""


def ballot_text(ballot: int) -> str:
    return f"{ballot:020d}"


def ms(seconds: float) -> int:
    return ceil(seconds * 1000)


def claim_text(claim: Claim, delay: str, host: str, pid: int) -> str:
    """What a claim looks like at a node, but for its ballot."""
    return f"{delay}{claim.owner} {pid} {host} {claim.spec.mode} {claim.actor}"


def waiter_text(since: int, listens: str, key: str, claim: str) -> str:
    """What a node writes down of somebody who waits: what `leave` takes away again."""
    return f"{since:016d}{listens}{key}\n{claim}"


@dataclass(frozen=True, slots=True)
class HeldRecord:
    """A hold, as one node keeps it. `left`: ms until its name is free again."""

    ballot: str
    delay: int
    owner: str
    detail: str
    left: int
    mark: str

    @classmethod
    def parse(cls, text: str, left: int, mark: str) -> HeldRecord:
        owner, _, detail = text[30:].removesuffix("\n").partition(" ")
        return cls(text[:20], int(text[20:30]), owner, detail, left, mark)

    @property
    def live(self) -> bool:
        return self.ballot != NOBODY and self.left > self.delay


@dataclass(frozen=True, slots=True)
class WaitingRecord:
    """Somebody who was seen waiting. `since` is by its own calendar, in µs. See `waiter_text`."""

    key: str
    since: int
    owner: str
    detail: str

    @classmethod
    def parse(cls, text: str) -> WaitingRecord:
        key, _, claim = text[16 + LISTENS_DIGITS_COUNT :].partition("\n")
        owner, _, detail = claim[10:].partition(" ")
        return cls(key, int(text[:16]), owner, detail)


def seed(holds: list[HeldRecord]) -> tuple[str, str]:
    """The mark with which a node begins that forgot this name, from the holds of a majority, and whose it is.

    The highest counts. If it is that of the hold, and all that have it agree on that, its owner may come back.
    """
    highest = max(hold.mark for hold in holds)
    owners = {hold.owner if hold.ballot == highest else "" for hold in holds if hold.mark == highest}
    return highest, owners.pop() if len(owners) == 1 else ""


@dataclass(frozen=True, slots=True)
class Memory:
    """What a node says of itself. `kind`: '+' it remembers, 'S' it does not, 'F' it is being founded."""

    clock: int
    kind: str
    run: str
    text: str
    floor: str = NOBODY
    longest: int = 0
    since: int = 0
    nonce: str = ""
    founding: str = ""

    @classmethod
    def parse(cls, said: str) -> Memory:
        clock, text = int(said[:16]), said[16:]
        if text[0] == "+":
            return cls(clock, "+", text[37:77], text, floor=text[1:21], longest=int(text[21:37]), founding=text[77:93])
        return cls(clock, text[0], text[1:41], text, since=int(text[41:57]), nonce=text[57:73], founding=text[73:89])

    def founded_by(self, founding: str) -> str:
        """The memory of the same node while all are being founded together."""
        return f"F{self.run}{self.since:016d}{self.nonce}{founding}"

    def remembering(self, floor: str, longest: int, founding: str) -> str:
        """The memory with which it votes from now on."""
        return f"+{floor}{longest:016d}{self.run}{founding}"
