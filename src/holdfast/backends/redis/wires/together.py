"""Takes and releases that leave in one write, as one call of one program: half the work for the server.

1. The programs do what is usual: take what is free, release what nobody waits for. All else is made as a call of its
   own, and so is everything if the server does not want many in one (a proxy that spreads keys over servers).
2. Each is told by itself, as if it had been alone. One whose task is interrupted does not keep the others waiting.
3. A call of many that has no answer is one for each of them. All have the same timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

from ....errors import OutcomeUnknown
from ...queue_backend import Take
from ..codec import Codec
from ..programs import Program, program
from ..resp import Error
from ..trouble import cannot_read
from .reply import Reply
from .stream import Stream, was_ended

MOST = 128
"""So many at once: for as long as a call of them takes, the server does nothing else."""


class Together:
    """Writes what a stream has to send. `alone` makes a call of its own for one, and answers it."""

    def __init__(self, codec: Codec, channel: str, alone: Callable[[Reply], None]) -> None:
        self._codec = codec
        self._channel = channel
        self._alone = alone
        self.do_without_flags = codec.do_without_flags
        self._takes = program("takes")
        self.allowed = True
        """The server takes many in one call, as far as is known."""

    def write(self, stream: Stream, replies: Sequence[Reply]) -> None:
        takes = [reply for reply in replies if reply.request.__class__ is Take]
        releases = takes and [reply for reply in replies if reply.request.__class__ is not Take]
        if takes:
            self._write(stream, takes, self._takes, self._take_words, _granted)
        if releases or not takes:
            self._write(stream, releases or replies, self._codec.releases, self._release_words, _released)

    def _write(
        self,
        stream: Stream,
        replies: Sequence[Reply],
        many: Program,
        words: Callable[[Reply], tuple[str, str]],
        usual: Callable[[Any], bool],
    ) -> None:
        for start in range(0, len(replies), MOST):
            group = replies[start : start + MOST]
            if len(group) == 1 or not self.allowed:
                for reply in group:
                    stream.enter(reply, self._frame(reply))
                continue
            written = [words(reply) for reply in group]
            text = "".join([key for key, _ in written]) + "".join([rest for _, rest in written])
            count = str(len(group))
            tail = f"${len(count)}\r\n{count}\r\n{text}".encode()
            crowd = Crowd(stream, group, many, tail, self, usual)
            stream.enter(crowd.reply(), many.call(1 + 3 * len(group)) + tail)

    def _frame(self, reply: Reply) -> bytes:
        request = reply.request
        if request.__class__ is Take:
            return self._codec.taking(request.claims[0], self._channel)
        return self._codec.releasing(request.claim)

    def _take_words(self, reply: Reply) -> tuple[str, str]:
        claim = reply.request.claims[0]
        kept = self._codec.of(claim.spec)
        owner, wake, actor = claim.owner, self._channel, claim.actor
        size = len(owner) + len(wake) + len(actor) + kept.size
        return kept.key, f"${size}\r\n{owner} {wake}{kept.before}{actor}{kept.detail}"

    def _release_words(self, reply: Reply) -> tuple[str, str]:
        claim = reply.request.claim
        kept = self._codec.of(claim.spec)
        owner = claim.owner
        return kept.key, f"${len(owner)}\r\n{owner}\r\n{kept.leaving}"

    def tell(self, replies: Sequence[Reply], said: Sequence[Any], usual: Callable[[Any], bool]) -> None:
        """Each what was said of it (rule 2)."""
        told = 0
        try:
            for reply, one in zip(replies, said, strict=True):
                told += 1
                if not usual(one):
                    self._alone(reply)
                elif reply.settle is not None:
                    reply.settle(reply, one)
        except BaseException:  # interrupted in a task
            asyncio.get_running_loop().call_soon(self.tell, replies[told:], said[told:], usual)
            raise

    def refused(self, replies: Sequence[Reply]) -> None:
        """The server does not want so many in one call; each by itself, from now on."""
        self.allowed = False
        for reply in replies:
            self._alone(reply)


class Crowd:
    """One call for many, and whom it is for. `usual` says what is an answer, and no reason for a call of its own."""

    __slots__ = ("_group", "_many", "_stream", "_tail", "_together", "_usual")

    def __init__(
        self,
        stream: Stream,
        group: Sequence[Reply],
        many: Program,
        tail: bytes,
        together: Together,
        usual: Callable[[Any], bool],
    ) -> None:
        self._stream = stream
        self._group = group
        self._many = many
        self._tail = tail
        self._together = together
        self._usual = usual

    def reply(self) -> Reply:
        """What the stream owes: told to everybody when it comes, or does not (rule 3)."""
        owed = Reply(asyncio.get_running_loop(), self._group[0].timeout, self._settle)
        owed.add_done_callback(self._lost, context=copy_context())
        return owed

    def _settle(self, owed: Reply, value: Any) -> None:
        owed.over = True
        if value.__class__ is not Error:
            self._together.tell(self._group, value, self._usual)
        elif value.code == "NOSCRIPT":
            self._enter_with_source()
        elif self._many.plain is not None and cannot_read(value):
            self._together.do_without_flags()
            self._many = self._many.plain
            self._enter_with_source()
        else:
            self._together.refused(self._group)

    def _enter_with_source(self) -> None:
        self._stream.enter(self.reply(), self._many.call_with_source(1 + 3 * len(self._group)) + self._tail)

    def _lost(self, owed: Reply) -> None:
        try:
            owed.result()
        except OutcomeUnknown as error:
            for reply in self._group:
                reply.deadline = owed.deadline
                if not (was_ended(error) and self._stream.make_again(reply)):
                    reply.set_exception(OutcomeUnknown(str(error)))


def _granted(said: Any) -> bool:
    return said.__class__ is bytes


def _released(said: Any) -> bool:
    return said in (0, 1)
