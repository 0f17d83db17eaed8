"""What is asked of the server, and how a write has its effect once, whatever the client does with it.

1. A client may send a command again when its connection breaks, unseen by us (redis-py does, by default). If the first
   one was carried out, its copy meets a value that has changed, and "conflict" would be a lie: the caller would read
   and change once more, and count twice.
2. So each write has a number of its own (a nonce), and leaves it in a small key of its own, the receipt, in the step in
   which it writes. A copy that finds its number there answers "written".
3. Receipts are used again by later writes of the same register, and expire after `KEPT_MS`: there are as many as
   registers that have written in the last minute (times the threads that wrote at once).
4. A refusal may be that of a copy, too: then the receipt is read.
5. A reply that comes when the receipt may have expired tells nothing: `OutcomeUnknown`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from ..._core.backoff import pause
from ...errors import OutcomeUnknown
from ...fenced.redis.programs import claimed, claiming, digits, done, fenced, key_beside, mark_key
from ..resend import unknown
from ..update import Step, now

KEPT_MS = 60_000
TRUSTED_S = KEPT_MS / 1000 / 2
"""How old a receipt may be when a reply is read: the clocks of client and server may differ in speed, not by that."""
MAX_SENDS_COUNT = 3
_REFUSED = frozenset({"ResponseError", "DataError"})
"""redis-py's errors that mean: this one was not carried out."""
_PASSING = frozenset({"ReadOnlyError", "ClusterDownError", "MasterDownError", "TryAgainError"})
"""Those among them that pass: another server takes over."""

Word = str | bytes | int


@dataclass(frozen=True, slots=True)
class RedisCommand:
    """One command."""

    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class RedisScript:
    """A program, with its keys and words."""

    text: str
    keys: tuple[str, ...]
    words: tuple[Word, ...]


@cache
def program(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


@dataclass(slots=True)
class Delivery:
    """The writes of one register."""

    key: str
    _receipts: list[str] = field(default_factory=list)
    _pid: int = field(default_factory=os.getpid)
    _claimed: int | None = None

    def claim(self, token: int) -> Step[None]:
        """Raise the mark of the key to the token, unless this register has done so already."""
        if token != self._claimed:
            reply = yield RedisScript(claiming(), (mark_key(self.key),), (digits(token), ""))
            claimed(reply, self.key, token)
            self._claimed = token

    def write(self, text: str, words: tuple[Word, ...], token: int | None, where: str) -> Step[bool]:
        """Carry a program out once. True: it has written; False: somebody else was quicker."""
        receipt, nonce = self._receipt(), os.urandom(8).hex()
        script = RedisScript(text, (self.key, receipt), (nonce, KEPT_MS, *words))
        if token is not None:
            script = RedisScript(fenced(text), (mark_key(self.key), *script.keys), (digits(token), "", *script.words))
        begin = yield from now()
        try:
            reply = yield from _send(script, where)
            written = bool((done(reply, self.key, token) if token is not None else reply) == 1)
        except OutcomeUnknown:
            raise
        except Exception:  # refused; that may be a copy, which came after a newer claim: what does the receipt say?
            written = (yield from _read_receipt(receipt, where)) == nonce
            if not written:
                yield from _check_age(begin, where)
                raise
        if not written:
            yield from _check_age(begin, where)
        self._receipts.append(receipt)
        return written

    def _receipt(self) -> str:
        if self._pid != os.getpid():  # forked: the parent goes on with its own
            self._pid, self._receipts = os.getpid(), []
        try:
            return self._receipts.pop()
        except IndexError:
            return f"{key_beside('cas', self.key)}/{os.urandom(8).hex()}"


def _check_age(begin: float, where: str) -> Step[None]:
    if (yield from now()) - begin > TRUSTED_S:
        raise unknown(where, "the reply took too long to be believed")


def _send(script: RedisScript, where: str) -> Step[Any]:
    sends = 0
    while True:
        try:
            return (yield script)
        except Exception as error:
            kinds = {kind.__name__ for kind in type(error).__mro__}
            if kinds & _REFUSED and not kinds & _PASSING:
                raise
            sends += 1
            if sends == MAX_SENDS_COUNT:
                raise unknown(where, error) from error
            yield from pause(sends)


def _read_receipt(receipt: str, where: str) -> Step[str]:
    try:
        found = yield RedisCommand(("GET", receipt))
    except Exception as error:
        raise unknown(where, error) from error
    return found.decode() if isinstance(found, bytes) else str(found)
