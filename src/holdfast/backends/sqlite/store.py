"""The verbs on a lock file: one short transaction each.

1. The uncontended take and release are one statement each; joining the line of a held mutex and handing it over are a
   few. Whatever is not that simple loads the line, applies the reference rule (`_core.line`) and saves what changed.
   The short ways and the long way answer alike: a property test drives both with the same requests.
2. Validity is in microseconds of the machine's boot clock; only tokens look at the calendar.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

from ..._core.line import look_again
from ...clock import calendar_us, now
from ...model import Claim
from ..line import Renew, Taken, patience
from ..verbs import SECOND, Moment, carry_out, us
from .file import LockFile
from .lines import SQLiteLines
from .programs import SQL

TAKE_FREE = SQL["take_free"]
RELEASE_ALONE = SQL["release_alone"]


class Promotion(NamedTuple):
    """Somebody's turn has come: where to tell whom, and the token."""

    name: str
    owner: str
    wake: str
    token: int


class SQLiteStore:
    """The lines of one namespace in one file."""

    def __init__(self, path: Path, namespace: str, host: str) -> None:
        self._file = LockFile(path)
        self._execute = self._file.execute
        self._prefix = namespace + "/"
        self._host = host
        self._pid = os.getpid()
        self.path = path
        self.cluster = self._file.cluster

    def take_free(self, claim: Claim) -> int:
        """The uncontended take: the token, or 0 if it is not that simple."""
        ask = claim.ask
        moment, token = now(), calendar_us()
        self._file.look_around(moment)
        try:
            taken = self._execute(
                TAKE_FREE,
                (self._prefix + ask.name, token, claim.owner, ask.weight, ask.capacity, ask.fair, int(ask.ttl * 1e6),
                 int(patience(ask) * 1e6), int(ask.lock_delay * 1e6), int(moment * 1e6), claim.actor, ask.mode,
                 self._host, self._pid),
            ).rowcount  # fmt: skip
        except sqlite3.Error as error:
            raise self._file.translated(error) from error
        return token if taken == 1 else 0

    def release_alone(self, claim: Claim) -> bool:
        """The uncontended release: True if it was held and nobody else is in the line."""
        mine = (self._prefix + claim.ask.name, claim.owner, int(now() * 1e6))
        try:
            return self._execute(RELEASE_ALONE, mine).rowcount == 1
        except sqlite3.Error as error:
            raise self._file.translated(error) from error

    def join(self, claim: Claim, wake: str) -> Taken | None:
        """The contended take of a mutex: a place behind a live holder; None if it is not that simple."""
        ask = claim.ask
        key, keep = self._prefix + ask.name, us(patience(ask))
        with self._file.transaction() as execute:
            moment = us(now())
            look = (key, moment, claim.owner)
            last, mark, held, odd, waiting, holding, ends = execute(SQL["look_at_line"], look).fetchone()
            if not held or odd:
                return None
            execute(
                SQL["join"],
                (key, last + 1, claim.owner, ask.fair, us(ask.ttl), keep, us(ask.lock_delay), moment, wake,
                 claim.actor, ask.mode, self._host, self._pid),
            )  # fmt: skip
        return Taken(0, look_again(keep, moment, waiting > 0, (ends,)) / SECOND, waiting + holding, mark=mark)

    def hand_over(self, claim: Claim) -> list[Promotion] | None:
        """The contended release of a mutex: whoever holds it now; None if it is not that simple."""
        name = claim.ask.name
        key = self._prefix + name
        with self._file.transaction() as execute:
            moment = us(now())
            mine = (key, claim.owner, moment)
            if not (execute(SQL["go_from_line"], mine).rowcount or execute(SQL["go_from_seat"], mine).rowcount):
                return None
            heir = execute(SQL["heir"], (key, moment)).fetchone()
            if heir is None:
                return []
            place, owner, wake, mark = heir
            token = max(mark + 1, calendar_us())
            execute(SQL["grant"], (key, place, token, moment))
            execute(SQL["save_mark"], (key, token))
        return [Promotion(name, owner, wake, token)]

    def carry_out(self, request: Any, wake: str) -> tuple[Any, list[Promotion]]:
        """Any verb, in one transaction. Answers with the reply and who was promoted."""
        self._file.look_around(now())
        with self._file.transaction() as execute:
            at = Moment(us(now()), calendar_us(), wake, self._host, self._pid)
            if isinstance(request, Renew):
                return self._renew(request, at), []
            reply, promoted = carry_out(SQLiteLines(execute, self._prefix), request, at)
        return reply, [Promotion(name, place.owner, place.wake, place.token) for name, place in promoted]

    def _renew(self, request: Renew, at: Moment) -> list[str]:
        said = []
        for claim in request.claims:
            key = self._prefix + claim.ask.name
            if self._execute(SQL["renew"], (key, claim.owner, at.now, claim.token)).rowcount == 1:
                said.append("held")
            else:
                line = SQLiteLines(self._execute, self._prefix).load(claim.ask.name)
                said.append(line.renew(claim.owner, at.now, claim.token))
        return said

    def close(self) -> None:
        self._file.close()
