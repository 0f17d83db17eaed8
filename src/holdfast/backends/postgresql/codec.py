"""Verbs as statements, and rows as what the flows expect.

What a claim says of itself is written once per ask and actor and kept, because a lock is taken again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ...model import Claim, LockSpec, LockView
from ..execute import us
from ..queue_backend import Allow, Evict, QueueRequest, Recover, Release, Renew, Survey, Take, Taken, patience
from ..relational.batch import LeaveAll, Left, LookAll, Looked, left_of, looked_of
from ..relational.error_mapping import Rows
from ..relational.records import behind_prefix
from ..relational.replies import Released, allowed_of, pushes_of, taken_of, views_of
from .programs import SQL, ProgramStatement

NEXT = chr(1)
"""After that very name, and before every longer one: names have no control characters."""

KEPT_COUNT = 1024


class Order(NamedTuple):
    """One statement with its values, and how to read the rows that it answers with."""

    statement: ProgramStatement
    values: Sequence[bytes]
    read: Callable[[Rows], object]


class Written(NamedTuple):
    """What is the same in every take for one ask, by one actor."""

    spec: LockSpec
    actor: str
    key: bytes
    before: tuple[bytes, ...]
    after: tuple[bytes, ...]
    """The values before and after `queue` and `wake`."""
    who: bytes
    """What others see of it, for session locks."""


class Codec:
    """Writes orders for one namespace on behalf of one process."""

    def __init__(self, namespace: str, host: str, pid: int) -> None:
        self._prefix = f"{namespace}/"
        self._host = host.encode()
        self._pid = b"%d" % pid
        self._written: dict[int, Written] = {}

    def write(
        self, request: QueueRequest | LookAll | LeaveAll, wake: bytes | None = None, waited: bool = False
    ) -> Order:
        """Any verb. `wake` is the channel that a push reaches the asker's coordinator on.

        `waited`: what is released had to be waited for.
        """
        wake = wake or b""
        match request:
            case Take(claims=[claim], queue=queue):
                kept = self.details(claim)
                owner = claim.owner.encode()
                values = (kept.key, owner, *kept.before, b"t" if queue else b"f", wake, *kept.after)
                return Order(SQL["take"], values, _taken)
            case Release(claim=claim, linger=linger):
                span = b"%d" % us(linger) if linger else b"0"
                values = (self.key(claim.spec.name), claim.owner.encode(), span, wake, b"t" if waited else b"f")
                return Order(SQL["release"], values, _released)
            case Renew(claims=claims):
                names = array(self._prefix + claim.spec.name for claim in claims)
                owners, tokens = (array(claim.owner for claim in claims), array(claim.token for claim in claims))
                return Order(SQL["renew"], (names, owners, tokens), _said)
            case Take(claims=claims, queue=queue):
                return Order(SQL["enter"], self._many(claims, queue, wake), _taken)
            case LookAll(claims=claims):
                return Order(SQL["look_all"], (*self._places(claims), wake), _looked)
            case LeaveAll(claims=claims):
                return Order(SQL["leave_all"], (*self._places(claims), wake), _left)
            case Evict(name=name, token=token):
                return Order(SQL["evict"], (self.key(name), b"%d" % token), yes)
            case Recover(claim=claim):
                values = (self.key(claim.spec.name), claim.owner.encode(), b"%d" % claim.token)
                return Order(SQL["recover"], values, yes)
            case Survey(prefix=prefix, exact=exact, contended=contended):
                first = self._prefix + prefix
                last = first + NEXT if exact else behind_prefix(first)
                return Order(SQL["survey"], (first.encode(), last.encode(), b"t" if contended else b"f"), self.views)
            case Allow(name=name):
                numbers = (us(request.interval), request.burst, request.cost, us(request.reserve))
                return Order(SQL["allow"], (self.key(name), *(b"%d" % number for number in numbers)), _allowed)
        return self.write_record(request)

    def write_record(self, request: object) -> Order:
        """Of those codecs that know records."""
        raise TypeError(f"not a verb: {request!r}")

    def tidy(self, most: int) -> Order:
        """Housekeeping: about so many rows, wherever they are."""
        return Order(SQL["tidy"], (b"%d" % most,), nothing)

    def key(self, name: str) -> bytes:
        return (self._prefix + name).encode()

    def details(self, claim: Claim) -> Written:
        spec = claim.spec
        kept = self._written.get(id(spec))
        if kept is None or kept.spec is not spec or kept.actor != claim.actor:
            numbers = tuple(b"%d" % number for number in _numbers(claim))
            fair, robust = (b"t" if yes else b"f" for yes in (spec.fair, spec.robust))
            before = (*numbers[:2], fair, *numbers[2:], robust)
            after = (claim.actor.encode(), spec.mode.encode(), self._host, self._pid)
            kept = Written(spec, claim.actor, self.key(spec.name), before, after, b"\n".join((*after, numbers[2])))
            if len(self._written) >= KEPT_COUNT:
                self._written.clear()
            self._written[id(spec)] = kept
        return kept

    def _places(self, claims: Sequence[Claim]) -> tuple[bytes, bytes]:
        return array(self._prefix + claim.spec.name for claim in claims), array(claim.owner for claim in claims)

    def views(self, rows: Rows) -> list[LockView]:
        return views_of(rows, self._prefix)

    def _many(self, claims: Sequence[Claim], queue: bool, wake: bytes) -> tuple[bytes, ...]:
        weights, capacities, ttls, patiences, delays = zip(*map(_numbers, claims), strict=True)
        return (
            array(self._prefix + claim.spec.name for claim in claims),
            array(claim.owner for claim in claims),
            array(weights),
            array(capacities),
            array("t" if claim.spec.fair else "f" for claim in claims),
            array(ttls),
            array(patiences),
            array(delays),
            array("t" if claim.spec.robust else "f" for claim in claims),
            b"t" if queue else b"f",
            wake,
            array(claim.actor for claim in claims),
            array(claim.spec.mode for claim in claims),
            self._host,
            self._pid,
        )


def _numbers(claim: Claim) -> tuple[int, int, int, int, int]:
    spec = claim.spec
    return spec.weight, spec.capacity, us(spec.ttl), us(patience(spec)), us(spec.lock_delay)


def array(items: Iterable[object]) -> bytes:
    """An array as PostgreSQL reads it; every item is quoted."""
    quoted = (str(item).replace("\\", "\\\\").replace('"', '\\"') for item in items)
    return ("{" + ",".join(f'"{item}"' for item in quoted) + "}").encode()


# Replies


def _items(rows: Rows) -> list[bytes]:
    """The items of an array without text that needs quoting."""
    return (rows[0][0] or b"{}")[1:-1].split(b",")


def _taken(rows: Rows) -> list[Taken]:
    return taken_of((rows[0][0] or b"").split(b","))


def _said(rows: Rows) -> list[str]:
    return [item.decode() for item in _items(rows)]


def yes(rows: Rows) -> bool:
    return rows[0][0] == b"t"


def _released(rows: Rows) -> Released:
    held, *told = (rows[0][0] or b"f").split()
    return Released(held == b"t", pushes_of(told))


def _looked(rows: Rows) -> Looked:
    return looked_of(rows[0][0] or b"")


def _left(rows: Rows) -> Left:
    return left_of(rows[0][0] or b"", b"t")


def _allowed(rows: Rows) -> tuple[bool, float]:
    return allowed_of(_items(rows))


def nothing(rows: Rows) -> None:
    pass
