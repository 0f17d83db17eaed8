"""Verbs as statements, and rows as what the flows expect: the same for the blocking and the asyncio wire.

What a claim says of itself is written once per ask and actor and kept, because a lock is taken again and again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..._core.line import GHOST
from ...model import Ask, Claim, ClaimView, LockView
from ..line import Allow, Evict, Release, Renew, Survey, Take, Taken, patience
from ..verbs import SECOND, us
from .programs import SQL, Statement

LAST = chr(0x10FFFF)
"""After every name that begins with what stands before it."""
NEXT = chr(1)
"""After that very name, and before every longer one: names have no control characters."""

KEPT = 1024
Rows = list[list[bytes | None]]


class Order(NamedTuple):
    """One statement with its values, and how to read the rows that it answers with."""

    statement: Statement
    values: Sequence[bytes]
    read: Callable[[Rows], Any]


class Released(NamedTuple):
    """The reply to a release: whether it was held, and who waits in this coordinator and was granted by that."""

    held: bool
    pushes: Sequence[tuple[str, int]]


class Written(NamedTuple):
    """What is the same in every take for one ask, by one actor."""

    ask: Ask
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
        self._session_keys: dict[str, bytes] = {}

    def write(self, request: Any, wake: bytes = b"", waited: bool = False) -> Order:
        """Any verb. `wake` is the channel that a push reaches the asker's coordinator on.

        `waited`: what is released had to be waited for.
        """
        match request:
            case Take(claims=[claim], queue=queue):
                kept = self._details(claim)
                owner = claim.owner.encode()
                values = (kept.key, owner, *kept.before, b"t" if queue else b"f", wake, *kept.after)
                return Order(SQL["take"], values, _one_taken)
            case Release(claim=claim, linger=linger):
                span = b"%d" % us(linger) if linger else b"0"
                values = (self._key(claim.ask.name), claim.owner.encode(), span, wake, b"t" if waited else b"f")
                return Order(SQL["release"], values, _released)
            case Renew(claims=claims):
                names = _array(self._prefix + claim.ask.name for claim in claims)
                owners, tokens = (_array(claim.owner for claim in claims), _array(claim.token for claim in claims))
                return Order(SQL["renew"], (names, owners, tokens), _said)
            case Take(claims=claims, queue=queue):
                return Order(SQL["enter"], self._many(claims, queue, wake), _taken)
            case Evict(name=name, token=token):
                return Order(SQL["evict"], (self._key(name), b"%d" % token), _yes)
            case Survey(prefix=prefix, exact=exact, contended=contended):
                first = self._prefix + prefix
                last = first + (NEXT if exact else LAST)
                return Order(SQL["survey"], (first.encode(), last.encode(), b"t" if contended else b"f"), self._views)
            case Allow(name=name):
                numbers = (us(request.interval), request.burst, request.cost, us(request.reserve))
                return Order(SQL["allow"], (self._key(name), *(b"%d" % number for number in numbers)), _allowed)
        raise TypeError(f"not a verb: {request!r}")

    def tidy(self, after: str, most: int) -> Order:
        """Housekeeping: the next names after this one."""
        return Order(SQL["tidy"], (after.encode(), b"%d" % most), _name)

    # Session locks

    def session_key(self, name: str) -> bytes:
        """64 bits of a strong hash: no two names in use will ever meet."""
        if (key := self._session_keys.get(name)) is None:
            digest = hashlib.sha256(self._key(name)).digest()
            key = b"%d" % int.from_bytes(digest[:8], "big", signed=True)
            if len(self._session_keys) >= KEPT:
                self._session_keys.clear()
            self._session_keys[name] = key
        return key

    def session_try(self, claim: Claim, queue: bool, seen: bool) -> Order:
        """Take it if it is free. `seen`: others have seen it waiting."""
        kept = self._details(claim)
        values = (self.session_key(claim.ask.name), kept.key, claim.owner.encode(), kept.who, b"t" if queue else b"f")
        return Order(SQL["session_again" if seen else "session_try"], values, _number)

    def session_wait(self, claim: Claim) -> Order:
        kept = self._details(claim)
        values = (self.session_key(claim.ask.name), kept.key, claim.owner.encode(), kept.who)
        return Order(SQL["session_wait"], values, _number)

    def session_queue(self, claim: Claim) -> Order:
        """Be seen waiting."""
        kept = self._details(claim)
        return Order(SQL["session_queue"], (kept.key, claim.owner.encode(), kept.who), _nothing)

    def session_leave(self, owner: str) -> Order:
        return Order(SQL["session_leave"], (owner.encode(),), _nothing)

    def session_survey(self, request: Survey) -> Order:
        return self.write(request)._replace(statement=SQL["session_survey"])

    def session_unlock(self, name: str) -> Order:
        return Order(SQL["session_unlock"], (self.session_key(name),), _yes)

    def session_alive(self) -> Order:
        return Order(SQL["session_alive"], (), _yes)

    def _key(self, name: str) -> bytes:
        return (self._prefix + name).encode()

    def _details(self, claim: Claim) -> Written:
        ask = claim.ask
        kept = self._written.get(id(ask))
        if kept is None or kept.ask is not ask or kept.actor != claim.actor:
            numbers = tuple(b"%d" % number for number in _numbers(claim))
            before = (*numbers[:2], b"t" if ask.fair else b"f", *numbers[2:])
            after = (claim.actor.encode(), ask.mode.encode(), self._host, self._pid)
            kept = Written(ask, claim.actor, self._key(ask.name), before, after, b"\n".join((*after, numbers[2])))
            if len(self._written) >= KEPT:
                self._written.clear()
            self._written[id(ask)] = kept
        return kept

    def _many(self, claims: Sequence[Claim], queue: bool, wake: bytes) -> tuple[bytes, ...]:
        weights, capacities, ttls, patiences, delays = zip(*map(_numbers, claims), strict=True)
        return (
            _array(self._prefix + claim.ask.name for claim in claims),
            _array(claim.owner for claim in claims),
            _array(weights),
            _array(capacities),
            _array("t" if claim.ask.fair else "f" for claim in claims),
            _array(ttls),
            _array(patiences),
            _array(delays),
            b"t" if queue else b"f",
            wake,
            _array(claim.actor for claim in claims),
            _array(claim.ask.mode for claim in claims),
            self._host,
            self._pid,
        )

    def _views(self, rows: Rows) -> list[LockView]:
        found: dict[str, tuple[int, list[ClaimView], list[ClaimView]]] = {}
        for row in rows:
            name, capacity, owner, token, weight, host, pid, since, expires, actor, mode, holds, now = map(_text, row)
            _, holders, waiters = found.setdefault(name.removeprefix(self._prefix), (int(capacity), [], []))
            view = ClaimView(
                owner=owner.removeprefix(GHOST),
                token=int(token) or None,
                weight=int(weight),
                host=host,
                pid=int(pid),
                since=int(since) / SECOND,
                remaining=max(0, int(expires) - int(now)) / SECOND,
                actor=actor,
                mode=mode,
                live=token == "0" or (holds == "t" and not owner.startswith(GHOST)),
                age=max(0, int(now) - int(since)) / SECOND,
            )
            (holders if view.token else waiters).append(view)
        return [
            LockView(name, capacity, tuple(holders), tuple(waiters))
            for name, (capacity, holders, waiters) in found.items()
        ]


def _numbers(claim: Claim) -> tuple[int, int, int, int, int]:
    ask = claim.ask
    return ask.weight, ask.capacity, us(ask.ttl), us(patience(ask)), us(ask.lock_delay)


def _array(items: Iterable[object]) -> bytes:
    """An array as PostgreSQL reads it; every item is quoted."""
    quoted = (str(item).replace("\\", "\\\\").replace('"', '\\"') for item in items)
    return ("{" + ",".join(f'"{item}"' for item in quoted) + "}").encode()


# Replies


def _text(value: bytes | None) -> str:
    return (value or b"").decode()


def _items(rows: Rows) -> list[bytes]:
    """The items of an array without text that needs quoting."""
    return (rows[0][0] or b"{}")[1:-1].split(b",")


def _one_taken(rows: Rows) -> list[Taken]:
    return [_read_taken(*map(int, _items(rows)))]


def _taken(rows: Rows) -> list[Taken]:
    numbers = list(map(int, _items(rows)))
    return [_read_taken(*numbers[at : at + 5]) for at in range(0, len(numbers), 5)]


def _read_taken(token: int, look_again: int, ahead: int, capacity: int, mark: int) -> Taken:
    return Taken(token, look_again / SECOND, ahead, capacity or None, mark)


def _said(rows: Rows) -> list[str]:
    return [item.decode() for item in _items(rows)]


def _yes(rows: Rows) -> bool:
    return rows[0][0] == b"t"


def _released(rows: Rows) -> Released:
    held, *told = (rows[0][0] or b"f").split()
    return Released(held == b"t", [(told[at].decode(), int(told[at + 1])) for at in range(0, len(told), 2)])


def _allowed(rows: Rows) -> tuple[bool, float]:
    allowed, wait = map(int, _items(rows))
    return bool(allowed), wait / SECOND


def _nothing(rows: Rows) -> None:
    pass


def _number(rows: Rows) -> int:
    return int(rows[0][0] or 0)


def _name(rows: Rows) -> str:
    return _text(rows[0][0])
