"""What a node keeps, read and written as text of fixed widths (see `scripts/record.lua` and `scripts/hello.lua`)."""

from __future__ import annotations

from dataclasses import dataclass

from ...model import Claim

NOBODY = "0" * 20
NEVER = "0" * 16
HIGHEST = 2**63 - 1
"""Tokens fit into the integers of every database that may have to check them."""


def ballot_text(ballot: int) -> str:
    return f"{ballot:020d}"


def us(seconds: float) -> int:
    return int(seconds * 1_000_000)


def detail(claim: Claim, host: str, pid: int) -> str:
    """What others may want to know of a claim."""
    return f"{pid} {host} {claim.ask.mode} {claim.actor}"


@dataclass(frozen=True, slots=True)
class Record:
    """What a node keeps of a name."""

    mark: str
    ballot: str
    until: int
    closed: int
    since: int
    owner: str
    detail: str
    text: str

    @classmethod
    def parse(cls, text: str) -> Record:
        owner, _, rest = text[88:].partition(" ")
        return cls(text[:20], text[20:40], int(text[40:56]), int(text[56:72]), int(text[72:88]), owner, rest, text)


def seed_record(records: list[Record]) -> str:
    """The record with which a node begins that forgot this name, from those of a majority.

    The highest mark counts. If it is that of one hold, and all agree on it, its owner may come back.
    """
    mark = max(record.mark for record in records)
    highest = [record for record in records if record.mark == mark]
    holds = {(record.ballot, record.owner) for record in highest}
    if len(holds) == 1 and highest[0].ballot == mark:
        first = highest[0]
        return f"{mark}{mark}{NEVER}{NEVER}{first.since:016d}{first.owner} {first.detail}"
    return f"{mark}{NOBODY}{NEVER}{NEVER}{NEVER}"


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
