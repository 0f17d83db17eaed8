"""The verbs on a lock file: one short transaction each.

1. The uncontended take and release are one statement each; joining the line of a held mutex and handing it over are a
   few. Whatever is not that simple loads the line, applies the reference rule (`_core.line`) and saves what changed.
   The short ways and the long way answer alike: a property test drives both with the same requests.
2. What stands between a release and the next holder is written for speed: no context managers, few calls. A process
   that has just been woken finds nothing of its own in the processor's caches, and every call costs several times what
   it costs in a loop.
3. Validity is in microseconds of the machine's boot clock; only tokens look at the calendar.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import NamedTuple, overload

from ..._core.line import Place, look_again
from ...clock import calendar_us, now
from ...model import Claim, Predecessor
from ...record import Swapped
from ..execute import SECOND_US, Moment, carry_out, push_to, us
from ..execute_records import carry_out_record
from ..queue_backend import QueueReply, QueueRequest, Recover, Release, Renew, Survey, Take, Taken, patience
from ..record_requests import RECORD_REQUESTS, ListRecords, ReadRecord, RecordRequest, SwapRecord
from .file import BEGIN, COMMIT, SNAPSHOT, Execute, LockFile
from .programs import SQL
from .queue import FIRST_COUNT, FURTHER_RATIO, Further, SQLiteLines
from .records import SQLiteRecords, quick_swap

TAKE_FREE = SQL["take_free"]
RELEASE_ALONE = SQL["release_alone"]
LOOK_AT_LINE, JOIN = SQL["look_at_line"], SQL["join"]
NEXT, SEAT = SQL["next"], SQL["seat"]


class Promotion(NamedTuple):
    """Somebody's turn has come: where to tell whom, and the token."""

    name: str
    owner: str
    wake: str
    token: int
    expires: int
    """Until when; moved by whatever the owner does, so it tells whether the owner has been heard of since."""
    after: Predecessor | None


def promotion(name: str, place: Place) -> Promotion:
    return Promotion(name, place.owner, place.wake, place.token, place.expires, push_to(place).predecessor)


def _after(token: int, owner: str, how: str) -> Predecessor | None:
    return Predecessor(token, owner, how) if token else None


def _owners(request: QueueRequest) -> list[str]:
    """Who asks."""
    match request:
        case Take(claims=claims):
            return [claim.owner for claim in claims]
        case Release(claim=claim) | Recover(claim=claim):
            return [claim.owner]
    return []


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

    def take_free(self, claim: Claim) -> Taken | None:
        """The uncontended take; None if it is not that simple."""
        spec = claim.spec
        moment, token = now(), calendar_us()
        self._file.look_around(moment)
        try:
            taken = self._execute(
                TAKE_FREE,
                (self._prefix + spec.name, token, claim.owner, spec.weight, spec.capacity, spec.fair,
                 int(spec.ttl * 1e6), int(patience(spec) * 1e6), int(spec.lock_delay * 1e6),
                 int(moment * 1e6), claim.actor, spec.mode,
                 self._host, self._pid, spec.robust),
            ).fetchall()  # fmt: skip
        except sqlite3.Error as error:
            raise self._file.translated(error) from error
        if not taken:
            return None
        [(last, owner, how)] = taken
        return Taken(token, 0.0, 0, None, 0, 0.0, Predecessor(last, owner, how) if last else None)

    def release_alone(self, claim: Claim) -> bool:
        """The uncontended release: True if it was held and nobody else is in the line."""
        mine = (self._prefix + claim.spec.name, claim.owner, int(now() * 1e6))
        try:
            return self._execute(RELEASE_ALONE, mine).rowcount == 1
        except sqlite3.Error as error:
            raise self._file.translated(error) from error

    def join(self, claim: Claim, wake: str) -> Taken | None:
        """The contended take of a mutex: a place behind a live holder; None if it is not that simple."""
        spec = claim.spec
        key, keep = self._prefix + spec.name, int(patience(spec) * 1e6)
        execute = self._execute
        try:
            self._file.begin()
            moment = int(now() * 1e6)
            look = execute(LOOK_AT_LINE, (key, moment, claim.owner)).fetchone()
            simple = look is not None and not look[2]
            if simple:
                last, mark, _, first, ends = look
                execute(
                    JOIN,
                    (key, last + 1, claim.owner, spec.fair, int(spec.ttl * 1e6), keep, int(spec.lock_delay * 1e6),
                     moment, wake, claim.actor, spec.mode, self._host, self._pid, spec.robust),
                )  # fmt: skip
            execute(COMMIT)
        except BaseException as error:
            self._file.give_up(error)
            raise
        if not simple:
            return None
        ahead = 1 if first is None else last - first + 2  # or fewer: some may have left
        return Taken(0, look_again(keep, moment, first is not None, (ends,)) / SECOND_US, ahead, mark=mark)

    def hand_over(self, claim: Claim) -> list[Promotion] | None:
        """The contended release of a mutex: whoever holds it now; None if it is not that simple."""
        name = claim.spec.name
        key = self._prefix + name
        execute = self._execute
        try:
            self._file.begin()
            moment = int(now() * 1e6)
            heir = execute(NEXT, (key, claim.owner, moment)).fetchone()
            if heir is not None:
                place, owner, wake, mark, expires, *ended = heir
                token = max(mark + 1, calendar_us())
                execute(SEAT, (key, place, token, moment, *ended))
                promoted: list[Promotion] | None = [Promotion(name, owner, wake, token, expires, _after(*ended[:3]))]
            else:
                promoted = self._go(name, claim.owner, moment)
            execute(COMMIT)
        except BaseException as error:
            self._file.give_up(error)
            raise
        return promoted

    def _go(self, name: str, leaver: str, moment: int) -> list[Promotion] | None:
        """The same, wherever in the line its hold is, and even if nobody waits."""
        key = self._prefix + name
        mine = (key, leaver, moment)
        if left := self._execute(SQL["go_from_line"], mine).fetchall():
            self._execute(SQL["note_release"], (key, leaver, left[0][0]))
        elif not self._execute(SQL["go_from_seat"], mine).rowcount:
            return None
        heir = self._execute(SQL["heir"], (key, moment)).fetchone()
        if heir is None:
            return []
        place, owner, wake, mark, expires, *ended, free = heir
        token = max(mark + 1, calendar_us())
        if free:
            self._execute(SEAT, (key, place, token, moment, *ended))
        else:
            self._execute(SQL["grant"], (key, place, token, moment))
            self._execute(SQL["save_mark"], (key, token))
        return [Promotion(name, owner, wake, token, expires, _after(*ended[:3]))]

    def take_out(self, gone: Promotion) -> list[Promotion]:
        """End what was granted to somebody who is gone, unless it has been heard of since; answers whose turn it is."""

        def end(execute: Execute) -> list[Promotion]:
            lines, moment = SQLiteLines(execute, self._prefix), us(now())
            line = lines.load(gone.name)
            place = line.find(gone.owner)
            if place is None or (place.token, place.expires) != (gone.token, gone.expires):
                return []
            _, promoted = line.release(gone.owner, moment, calendar_us(), told=False)
            lines.save(gone.name, line)
            return [promotion(gone.name, place) for place in promoted]

        return self._file.transact(end)

    def swap_record(self, request: SwapRecord) -> Swapped | None:
        """What most swaps of records are; None if it is not that simple."""
        moment = now()
        self._file.stay(moment)
        try:
            return quick_swap(self._execute, self._prefix, request, int(moment * 1e6), calendar_us())
        except sqlite3.Error as error:
            raise self._file.translated(error) from error

    @overload
    def carry_out(self, request: Take, wake: str) -> tuple[list[Taken], list[Promotion]]: ...

    @overload
    def carry_out(self, request: QueueRequest, wake: str) -> tuple[QueueReply, list[Promotion]]: ...

    def carry_out(self, request: QueueRequest, wake: str) -> tuple[QueueReply, list[Promotion]]:
        """Any verb, in one transaction. Answers with the reply and who was promoted."""
        if isinstance(request, Survey):
            return self._survey(request), []
        if isinstance(request, RECORD_REQUESTS):
            return self._carry_out_record(request), []
        self._file.look_around(now())
        first = FIRST_COUNT

        def work(execute: Execute) -> tuple[QueueReply, list[Promotion]]:
            at = Moment(us(now()), calendar_us(), wake, self._host, self._pid)
            if isinstance(request, Renew):
                return self._renew(request, at), []
            lines = SQLiteLines(execute, self._prefix, _owners(request), first)
            reply, promoted = carry_out(lines, request, at)
            return reply, [promotion(name, place) for name, place in promoted]

        while True:
            try:
                return self._file.transact(work)
            except Further:
                first *= FURTHER_RATIO

    def _survey(self, request: Survey) -> QueueReply:
        self._file.stay(now())

        def work(execute: Execute) -> QueueReply:
            lines = SQLiteLines(execute, self._prefix, contended=request.contended)
            return carry_out(lines, request, Moment(us(now()), calendar_us()))[0]

        return self._file.transact(work, SNAPSHOT)

    def _carry_out_record(self, request: RecordRequest) -> QueueReply:
        self._file.stay(now())

        def work(execute: Execute) -> QueueReply:
            return carry_out_record(SQLiteRecords(execute, self._prefix), request, Moment(us(now()), calendar_us()))

        return self._file.transact(work, SNAPSHOT if isinstance(request, (ReadRecord, ListRecords)) else BEGIN)

    def _renew(self, request: Renew, at: Moment) -> list[str]:
        said = []
        for claim in request.claims:
            key = self._prefix + claim.spec.name
            hold = (key, claim.owner, at.now, claim.token)
            if any(self._execute(SQL[where], hold).rowcount == 1 for where in ("renew", "renew_in_line")):
                said.append("held")
            else:
                line = SQLiteLines(self._execute, self._prefix, (claim.owner,), FIRST_COUNT).load(claim.spec.name)
                said.append(line.renew(claim.owner, at.now, claim.token))
        return said

    def close(self) -> None:
        self._file.close()
