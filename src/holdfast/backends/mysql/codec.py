"""Verbs as statements, and replies as what the flows expect: the same for the blocking and the asyncio wire.

Text goes out in hexadecimal, so nothing needs escaping and no character set is in the way. What a claim says of itself
is written once per ask and actor and kept, because a lock is taken again and again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ...model import Claim, LockSpec, LockView
from ..execute import us
from ..queue_backend import Allow, Evict, QueueRequest, Release, Renew, Survey, Take, Taken, patience
from ..relational.batch import LeaveAll, Left, LookAll, Looked, left_of, looked_of
from ..relational.error_mapping import Refused
from ..relational.records import behind_prefix
from ..relational.replies import Released, allowed_of, pushes_of, taken_of, text_of, views_of
from .packets import QueryReply, number_value, text_value
from .short_cuts import NOW, QUICK_ENTER, QUICK_RELEASE, QUICK_TAKE, RELEASE_VALUES, TAKE_VALUES

T = TypeVar("T")

KEPT_COUNT = 1024
QUARTERS_COUNT = 40
"""For how long (10 s) ears wait at the server before they are asked again."""

ALONE_CODE = 31000
"""What `holdfast_hear` answers if there is no request connection beside it."""

RENEW = b"""UPDATE holdfast_claim c FORCE INDEX (PRIMARY) SET c.expires = %(now)b + c.ttl WHERE c.name IN (%(names)b)
AND c.place = 0 AND (c.owner, c.token) IN (%(holds)b) AND c.token > 0 AND c.expires > %(now)b AND NOT c.evicted"""
SURVEY = b"""SELECT c.name, s.capacity, c.owner, c.token, c.weight, c.host, c.pid, c.since, c.expires, c.actor, c.mode,
c.expires > %(now)b AND NOT c.evicted, %(now)b
FROM holdfast_claim c FORCE INDEX (PRIMARY) STRAIGHT_JOIN holdfast_claim s ON s.name = c.name AND s.place = 0
AND (s.crowded OR NOT %(contended)b) WHERE c.name >= %(first)b AND c.name < %(last)b AND c.owner IS NOT NULL
AND %(now)b < c.expires + IF(c.token > 0, c.delay, 0) ORDER BY c.name, c.place"""
"""Of one moment each: the time of a statement is that of its beginning. One snapshot, no lock. The survey, if it is
`contended`, is of lines with more than one place."""

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


class RecentNames(set[str]):
    """Some names: all are forgotten when there are too many, which costs a statement in vain at most."""

    def add(self, name: str) -> None:
        if len(self) >= KEPT_COUNT:
            self.clear()
        super().add(name)


class Codec:
    """Writes orders for one namespace on behalf of one process."""

    def __init__(self, namespace: str, host: str, pid: int, quick: bool = True) -> None:
        self._prefix = f"{namespace}/"
        self._host, self._pid = host, pid
        self._at = b"%b,%d" % (hexed(host), pid)
        self._quick = quick
        self._written: dict[int, Written] = {}
        self._busy = RecentNames()
        """Names where the quick statement was in vain; until one is granted at once, they are called for directly."""
        self._known = RecentNames()
        """Names that have a seat, as far as is known."""
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
                return Order(b"CALL holdfast_take_all(%b,%d,%d,%b)" % (several, queue, wake, self._at), _taken)
            case LookAll(claims=claims):
                places, order = self._places(claims)
                return Order(b"CALL holdfast_look_all(%b,%d)" % (places, wake), lambda reply: _looked(reply, order))
            case LeaveAll(claims=claims):
                places, order = self._places(claims)
                return Order(b"CALL holdfast_leave_all(%b,%d)" % (places, wake), lambda reply: _left(reply, order))
            case Evict(name=name, token=token):
                return Order(b"CALL holdfast_evict(%b,%d)" % (self._key(name), token), _yes)
            case Survey(prefix=prefix, contended=contended):
                bounds = {b"first": self._key(prefix), b"last": hexed(behind_prefix(self._prefix + prefix))}
                return Order(SURVEY % {b"now": NOW, b"contended": b"%d" % contended, **bounds}, self.views)
            case Allow(name=name):
                numbers = us(request.interval), request.burst, request.cost, us(request.reserve)
                return Order(b"CALL holdfast_allow(%b,%d,%d,%d,%d)" % (self._key(name), *numbers), _allowed)
        return self.write_record(request)

    def write_record(self, request: object) -> Order:
        """Of those codecs that know records."""
        raise TypeError(f"not a verb: {request!r}")

    def tidy(self, most: int) -> Order:
        """Housekeeping: the next names after those of the last time, whoever did it."""
        return Order(b"CALL holdfast_tidy(%d)" % most, _last)

    def _take(self, claim: Claim, queue: bool, wake: int) -> Order:
        kept = self._details(claim)
        name = claim.spec.name

        def entered(reply: QueryReply) -> list[Taken]:
            [taken] = _taken(reply)
            if taken.token:
                self._busy.discard(name)
            self._known.add(name)
            self._called = True
            return [taken]

        def enter() -> Order:
            values = kept.name, hexed(claim.owner), kept.before, queue, wake, kept.after
            return Order(b"CALL holdfast_take(%b,%b,%b,%d,%d,%b)" % values, entered)

        def read(reply: QueryReply) -> list[Taken] | Order:
            if reply.made:
                self._known.add(name)
                return [Taken(reply.made)]
            self._busy.add(name)
            return enter()

        if not self._quick or not self._called or name in self._busy:
            return enter()
        text = QUICK_TAKE if name in self._known else QUICK_ENTER
        return Order(text, read, TAKE_VALUES + text_value(claim.owner.encode()) + kept.bound)

    def _release(self, claim: Claim, linger: float, wake: int, waited: bool) -> Order:
        kept = self._details(claim)

        def leave() -> Order:
            values = kept.name, hexed(claim.owner), us(linger), wake
            return Order(b"CALL holdfast_release(%b,%b,%d,%d)" % values, _released)

        if not self._quick or linger or waited or claim.spec.name in self._busy:
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
            order = _by_name(claims)
            several = quoted_hex(json.dumps([self._held(claims[at]) for at in order]))
            return Order(b"CALL holdfast_renew(%b)" % several, lambda found: _said(found, order))

        return Order(RENEW % {b"now": NOW, b"names": names, b"holds": holds}, read)

    def _places(self, claims: Sequence[Claim]) -> tuple[bytes, list[int]]:
        """Names and owners as `schema/batches.sql` has them, and in which order."""
        order, words, before = _by_name(claims), "", ""
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
            kept = Written(spec, claim.actor, self._key(spec.name), b"%d,%d,%d,%d,%d,%d" % numbers, after, key, values)
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
    return Order(b"SELECT GET_LOCK('holdfast-ears-%d', 0)" % wake, _yes)


def listener_hear(wake: int, beside: int) -> Order:
    """Wait at the server until there is a push, and fetch it: (owner, token) of each. `beside`: the request session."""
    return Order(b"CALL holdfast_hear(%d,%d,%d)" % (wake, beside, QUARTERS_COUNT), _pushes)


def heard_in(error: Refused) -> list[tuple[str, int]]:
    """What came before the rousing."""
    return _pushes(error)


def _numbers(claim: Claim) -> tuple[int, int, int, int, int, int]:
    spec = claim.spec
    return spec.weight, spec.capacity, int(spec.fair), us(spec.ttl), us(patience(spec)), us(spec.lock_delay)


def hexed(text: str) -> bytes:
    """Text as a literal."""
    return b"x'%b'" % text.encode().hex().encode()


def quoted_hex(ascii_text: str) -> bytes:
    """Of JSON whose strings are hexadecimal: there is neither a quote nor a backslash in it."""
    return b"'%b'" % ascii_text.encode("ascii")


# Replies


def _one(reply: QueryReply) -> bytes:
    return reply.rows[0][0] or b""


def _taken(reply: QueryReply) -> list[Taken]:
    return taken_of(_one(reply).split(b","))


def _by_name(claims: Sequence[Claim]) -> list[int]:
    """Numbers of claims in the order of their names, as the server sorts them."""
    return sorted(range(len(claims)), key=lambda at: claims[at].spec.name.encode())


def in_turn(told: Sequence[T], order: Sequence[int]) -> list[T]:
    """What is told in this order, in that of the claims."""
    numbered = dict(zip(order, told, strict=True))
    return [numbered[at] for at in range(len(told))]


def _said(reply: QueryReply, order: Sequence[int]) -> list[str]:
    return in_turn(_one(reply).decode().split(","), order)


def _looked(reply: QueryReply, order: Sequence[int]) -> Looked:
    taken, pushes = looked_of(_one(reply))
    return Looked(in_turn(taken, order), pushes)


def _left(reply: QueryReply, order: Sequence[int]) -> Left:
    held, pushes = left_of(_one(reply), b"1")
    return Left(in_turn(held, order), pushes)


def _yes(reply: QueryReply) -> bool:
    return _one(reply) == b"1"


def _released(reply: QueryReply) -> Released:
    held, *told = _one(reply).split()
    return Released(held == b"1", pushes_of(told))


def _allowed(reply: QueryReply) -> tuple[bool, float]:
    return allowed_of(_one(reply).split(b","))


def _last(reply: QueryReply) -> bytes:
    return _one(reply)


def _pushes(reply: QueryReply | Refused) -> list[tuple[str, int]]:
    return [(text_of(owner), int(token or 0)) for owner, token in reply.rows]
