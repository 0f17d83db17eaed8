"""Verbs as statements, and replies as what the flows expect: the same for the blocking and the asyncio wire.

Text goes out in hexadecimal, so nothing needs escaping and no character set is in the way. What a claim says of itself
is written once per ask and actor and kept, because a lock is taken again and again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...model import Claim, LockSpec, LockView, Predecessor
from ..execute import us
from ..queue_backend import Allow, Evict, QueueRequest, Recover, Release, Renew, Survey, Take, Taken, patience
from ..relational.batch import LeaveAll, LookAll
from ..relational.error_mapping import Refused
from ..relational.records import behind_prefix
from ..relational.replies import Released, predecessor_of, views_of
from . import replies
from .packets import QueryReply, number_value, text_value
from .recent_names import KEPT_COUNT, TakenNames
from .short_cuts import ENTER_VALUES, NOW, QUICK_ENTER, QUICK_RELEASE, QUICK_TAKE, RELEASE_VALUES, TAKE_VALUES

QUARTERS_COUNT = 40
"""For how long (10 s) ears wait at the server before they are asked again."""

ALONE_CODE = 31000
"""What `holdfast_hear` answers if there is no request connection beside it."""

RENEW = b"""UPDATE holdfast_claim c FORCE INDEX (PRIMARY) SET c.expires = %(now)b + c.ttl WHERE c.name IN (%(names)b)
AND c.place = 0 AND (c.owner, c.token) IN (%(holds)b) AND c.token > 0 AND c.expires > %(now)b AND NOT c.evicted"""
SURVEY = b"""SELECT c.name, s.capacity, c.owner, c.token, c.weight, c.host, c.pid, c.since, c.expires, c.actor, c.mode,
c.expires > %(now)b AND NOT c.evicted, %(now)b, CASE WHEN c.owner IS NULL THEN NULL
WHEN %(now)b < c.expires + IF(c.token > 0, c.delay, 0) THEN 'stands' WHEN %(expired)b THEN 'expired' END AS state,
c.robust, IF(s.unrecovered, s.note, NULL) AS note
FROM holdfast_claim c FORCE INDEX (PRIMARY) STRAIGHT_JOIN holdfast_claim s ON s.name = c.name AND s.place = 0
AND (s.crowded OR NOT %(contended)b) WHERE c.name >= %(first)b AND c.name < %(last)b AND (c.owner IS NOT NULL
AND (%(now)b < c.expires + IF(c.token > 0, c.delay, 0) OR %(expired)b) OR c.place = 0 AND c.unrecovered)
ORDER BY c.name, c.place"""
"""Of one moment each: the time of a statement is that of its beginning. One snapshot, no lock. The survey, if it is
`contended`, is of lines with more than one place. It tells whether a name is unrecovered, too: by its note, and by
holds whose time is over and that nobody has noted yet."""
SURVEY = SURVEY.replace(b"%(expired)b", b"c.token > 0 AND NOT c.evicted AND LEFT(c.owner, 1) <> '~'")

HELD = Released(True)


class Order(NamedTuple):
    """One statement, and how to read the reply; the reading may ask for another order first.

    With `values` it is one that was prepared, and these are its values in binary. `instead` says what to ask if it is
    refused, if anything.
    """

    text: bytes
    read: Callable[[QueryReply], Any]
    values: bytes = b""
    instead: Callable[[Refused], Order | None] | None = None


class Written(NamedTuple):
    """What is the same in every take for one ask, by one actor."""

    spec: LockSpec
    actor: str
    name: bytes
    before: bytes
    after: bytes
    """The values between the owner and `queue`, and after `wake`."""
    key: bytes
    bound: bytes
    """The name, and all but the owner, as values of a prepared statement."""


class Codec:
    """Writes orders for one namespace on behalf of one process."""

    def __init__(self, namespace: str, host: str, pid: int, quick: bool = True) -> None:
        self._prefix = f"{namespace}/"
        self._host, self._pid = host, pid
        self._at = b"%b,%d" % (hexed(host), pid)
        self._quick = quick
        self._written: dict[int, Written] = {}
        self._names = TakenNames()
        self._called = False
        """Whether a take was called for. The first one is: who may not call procedures is told so at once."""

    def write(self, request: QueueRequest | LookAll | LeaveAll, wake: int | None = None, waited: bool = False) -> Order:
        """Any verb. `wake` says whose ears a push reaches the asker through.

        `waited`: what is released had to be waited for.
        """
        wake = wake or 0
        match request:
            case Take(claims=[claim], queue=queue):
                return self._take(claim, queue, wake)
            case Release(claim=claim, linger=linger):
                return self._release(claim, linger, wake, waited)
            case Renew(claims=claims):
                return self._renew(claims)
            case Take(claims=claims, queue=queue):
                several = quoted_hex(json.dumps([self._listed(claim) for claim in claims]))
                return Order(b"CALL holdfast_take_all(%b,%d,%d,%b)" % (several, queue, wake, self._at), replies.taken)
            case LookAll(claims=claims):
                places, order = self._places(claims)
                return Order(
                    b"CALL holdfast_look_all(%b,%d)" % (places, wake), lambda reply: replies.looked(reply, order)
                )
            case LeaveAll(claims=claims):
                places, order = self._places(claims)
                return Order(
                    b"CALL holdfast_leave_all(%b,%d)" % (places, wake), lambda reply: replies.left(reply, order)
                )
            case Evict(name=name, token=token):
                return Order(b"CALL holdfast_evict(%b,%d)" % (self._key(name), token), replies.yes)
            case Recover(claim=claim):
                values = self._key(claim.spec.name), hexed(claim.owner), claim.token
                return Order(b"CALL holdfast_recover(%b,%b,%d)" % values, replies.yes)
            case Survey(prefix=prefix, contended=contended):
                bounds = {b"first": self._key(prefix), b"last": hexed(behind_prefix(self._prefix + prefix))}
                return Order(SURVEY % {b"now": NOW, b"contended": b"%d" % contended, **bounds}, self.views)
            case Allow(name=name):
                numbers = us(request.interval), request.burst, request.cost, us(request.reserve)
                return Order(b"CALL holdfast_allow(%b,%d,%d,%d,%d)" % (self._key(name), *numbers), replies.allowed)
        return self.write_record(request)

    def write_record(self, request: object) -> Order:
        """Of those codecs that know records."""
        raise TypeError(f"not a verb: {request!r}")

    def tidy(self, most: int) -> Order:
        """Housekeeping: the next names after those of the last time, whoever did it."""
        return Order(b"CALL holdfast_tidy(%d)" % most, replies.one)

    def _take(self, claim: Claim, queue: bool, wake: int) -> Order:
        kept, names = self._details(claim), self._names
        name = claim.spec.name

        def entered(reply: QueryReply) -> list[Taken]:
            [taken] = replies.taken(reply)
            if taken.token:
                names.granted(name, claim.owner, taken.token, taken.predecessor)
            self._called = True
            return [taken]

        def enter() -> Order:
            values = kept.name, hexed(claim.owner), kept.before, queue, wake, kept.after
            return Order(b"CALL holdfast_take(%b,%b,%b,%d,%d,%b)" % values, entered)

        def granted(token: int, predecessor: Predecessor | None) -> list[Taken] | Order:
            if not token:
                names.busy.add(name)
                return enter()
            names.granted(name, claim.owner, token, predecessor)
            return [Taken(token, predecessor=predecessor)]

        def made(reply: QueryReply) -> list[Taken] | Order:
            token, note = (reply.rows[0][-1] or b"").split(b",") if reply.rows else (b"0", b"")
            return granted(int(token), predecessor_of(note))

        if not self._quick or not self._called or name in names.busy:
            return enter()
        values = text_value(claim.owner.encode()) + kept.bound
        if (last := names.expected(name)) is None:
            return Order(QUICK_ENTER, made, ENTER_VALUES + values)
        note = text_value(b"released:%d:%b" % (last.token, last.owner.encode()))
        return Order(QUICK_TAKE, lambda reply: granted(reply.made, last), TAKE_VALUES + values + note)

    def _release(self, claim: Claim, linger: float, wake: int, waited: bool) -> Order:
        kept = self._details(claim)

        def leave() -> Order:
            values = kept.name, hexed(claim.owner), us(linger), wake
            return Order(b"CALL holdfast_release(%b,%b,%d,%d)" % values, replies.released)

        if not self._quick or linger or waited or claim.spec.name in self._names.busy:
            return leave()
        values = RELEASE_VALUES + kept.key + text_value(claim.owner.encode())
        return Order(QUICK_RELEASE, lambda reply: HELD if reply.changed else leave(), values)

    def _renew(self, claims: Sequence[Claim]) -> Order:
        """One update for all on their seats; if some are not there, a call finds them, or out why they are nowhere."""
        names = b",".join({self._key(claim.spec.name) for claim in claims})
        holds = b",".join(b"(%b,%d)" % (hexed(claim.owner), claim.token) for claim in claims)

        def read(reply: QueryReply) -> list[str] | Order:
            if reply.changed == len(claims):
                return ["held"] * len(claims)
            order = replies.by_name(claims)
            several = quoted_hex(json.dumps([self._held(claims[at]) for at in order]))
            return Order(b"CALL holdfast_renew(%b)" % several, lambda found: replies.renewed(found, order))

        return Order(RENEW % {b"now": NOW, b"names": names, b"holds": holds}, read)

    def _places(self, claims: Sequence[Claim]) -> tuple[bytes, list[int]]:
        """Names and owners as `schema/batches.sql` has them, and in which order."""
        order, words, before = replies.by_name(claims), "", ""
        for at in order:
            name = (self._prefix + claims[at].spec.name).encode().hex()
            words += f"{'' if name == before else name},{claims[at].owner.encode().hex()},"
            before = name
        return quoted_hex(words), order

    def _held(self, claim: Claim) -> list[object]:
        texts = (self._prefix + claim.spec.name, claim.owner)
        return [*(text.encode().hex() for text in texts), claim.token]

    def _key(self, name: str) -> bytes:
        return hexed(self._prefix + name)

    def _details(self, claim: Claim) -> Written:
        spec = claim.spec
        kept = self._written.get(id(spec))
        if kept is None or kept.spec is not spec or kept.actor != claim.actor:
            numbers = _numbers(claim)
            after = b"%b,%b,%b" % (hexed(claim.actor), hexed(spec.mode), self._at)
            key = text_value((self._prefix + spec.name).encode())
            texts = [text_value(text.encode()) for text in (claim.actor, spec.mode, self._host)]
            values = b"".join([*map(number_value, (*numbers, us(spec.ttl))), *texts, number_value(self._pid), key])
            kept = Written(
                spec, claim.actor, self._key(spec.name), b"%d,%d,%d,%d,%d,%d,%d" % numbers, after, key, values
            )
            if len(self._written) >= KEPT_COUNT:
                self._written.clear()
            self._written[id(spec)] = kept
        return kept

    def _listed(self, claim: Claim) -> list[object]:
        name, owner, actor = ((self._prefix + claim.spec.name), claim.owner, claim.actor)
        hexes = [text.encode().hex() for text in (name, owner, actor, claim.spec.mode)]
        return [*hexes[:2], *_numbers(claim), *hexes[2:]]

    def views(self, reply: QueryReply) -> list[LockView]:
        return views_of(reply.rows, self._prefix)


def listener_open(wake: int) -> Order:
    """These ears are ours: whoever rouses them asks the server whose lock this is."""
    return Order(b"SELECT GET_LOCK('holdfast-ears-%d', 0)" % wake, replies.yes)


def listener_hear(wake: int, beside: int) -> Order:
    """Wait at the server until there is a push, and fetch it. `beside`: the request session."""
    return Order(b"CALL holdfast_hear(%d,%d,%d)" % (wake, beside, QUARTERS_COUNT), replies.pushes)


def _numbers(claim: Claim) -> tuple[int, int, int, int, int, int, int]:
    spec = claim.spec
    spans = us(spec.ttl), us(patience(spec)), us(spec.lock_delay)
    return spec.weight, spec.capacity, int(spec.fair), *spans, int(spec.robust)


def hexed(text: str) -> bytes:
    """Text as a literal."""
    return b"x'%b'" % text.encode().hex().encode()


def quoted_hex(ascii_text: str) -> bytes:
    """Of JSON whose strings are hexadecimal: there is neither a quote nor a backslash in it."""
    return b"'%b'" % ascii_text.encode("ascii")
