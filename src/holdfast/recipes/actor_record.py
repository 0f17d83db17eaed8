"""What is kept of an actor: the contents of its record, as data and as text.

1. One record holds the state, the inbox, the ids of what was handled last, answers, and the mark: the token of the
   worker that has claimed it. Each change is one swap, so taking a message, the new state, the acknowledgement and the
   answer are one write.
2. Values of the user's stand in it as JSON text, which is decoded for each try: a handler that has failed leaves no
   trace in the state that it was given.
3. Messages are numbered from 1 in the order of the inbox, without gaps. The inbox holds the last numbers, `ids` the
   ones before: whether a number was ever told can be known as long as it is in one of them.
4. Whoever tells or acknowledges writes the whole record, so it is text that need not be taken apart: a line of numbers,
   one for the state, one for outcomes, one for ids, and one for each message. All of it is ASCII, and what JSON writes
   has neither line feeds nor tabs in it: these separate.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii as quote
from typing import Any, NamedTuple

from ..errors import Misconfigured
from ..record import Record
from .actor_options import FORGET_S, KEEP_S, MAX_ANSWERS_BYTES

LAYOUT = "holdfast-actor-2"
REMEMBERED_COUNT = 256
"""How many ids of handled messages are remembered, so that a message that is told again is not handled again."""
ERROR_BYTES = 500
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
"""`json.dumps` makes one for each call, which takes longer than a small value does."""


class InboxMessage(NamedTuple):
    """A message in an inbox. `tries` counts how often its handling has ended badly."""

    id: str
    body: str
    asked: bool = False
    """Whether somebody waits for the answer."""
    tries: int = 0
    error: str = ""
    """Of the last try."""

    def line(self) -> str:
        """As it stands in the record."""
        return f"\n[{quote(self.id)},{int(self.asked)},{self.tries},{quote(self.error)}]\t{self.body}"


class Handled(NamedTuple):
    """What has left the inbox. `answer` is kept until it is fetched; `error` if it became a dead letter."""

    id: str
    answer: str | None = None
    error: str | None = None


class ActorRecord(NamedTuple):
    """An actor as it is kept."""

    state: str = "null"
    inbox: str = ""
    """A line for each message."""
    waiting: int = 0
    """How many there are."""
    ids: str = "\t"
    """Of what was handled, with a tab behind each."""
    remembered: int = 0
    """How many there are."""
    outcomes: str = "{}"
    """Answers that nobody has fetched, and errors, by id."""
    told: int = 0
    """The number of the last message in the inbox."""
    mark: int = 0
    listed: bool = False
    """Whether a record of the index of actors with messages stands for it (see `actor_inbox`)."""
    begun: int = 0
    """So many of the first messages may be under way: its worker begins no others before its next write."""
    careful: int = 0
    """So many of the first messages are begun one at a time (see `actor_worker`)."""

    @property
    def head(self) -> InboxMessage | None:
        """The message whose turn it is."""
        return self.message_at(0)[0] if self.inbox else None

    def message_at(self, begin: int) -> tuple[InboxMessage, int]:
        """The message whose line begins there, and where the next one does."""
        end = self.inbox.find("\n", begin + 1)
        end = len(self.inbox) if end < 0 else end
        marks, _, body = self.inbox[begin + 1 : end].partition("\t")
        message_id, asked, tries, error = json.loads(marks)
        return InboxMessage(message_id, body, bool(asked), tries, error), end

    @property
    def head_number(self) -> int:
        """Its number, or the one that the next message will have."""
        return self.told - self.waiting + 1

    @property
    def known_number(self) -> int:
        """The lowest number of which it is known what became of it."""
        return self.head_number - self.remembered

    @property
    def keep(self) -> float:
        """For how long the record is kept without another write."""
        return FORGET_S if self.state == "null" and not self.inbox else KEEP_S

    def knows(self, message_id: str) -> bool:
        """Whether a message with this id waits in the inbox, or was handled lately."""
        name = quote(message_id)
        return f"\n[{name}," in self.inbox or f"\t{name[1:-1]}\t" in self.ids

    def fate(self, message_id: str) -> Handled | None:
        """What became of a message; None while it waits, or if it is not known."""
        if f"\t{quote(message_id)[1:-1]}\t" not in self.ids:
            return None
        return Handled(message_id, *json.loads(self.outcomes).get(message_id, ()))

    def with_message(self, message: InboxMessage) -> ActorRecord:
        return self._replace(
            inbox=self.inbox + message.line(), waiting=self.waiting + 1, told=self.told + 1, listed=True
        )

    def claimed(self, token: int) -> ActorRecord:
        """Marked by a worker, which begins with the first message. What another one has begun has ended badly: if it
        was one message, that is known to be the one. `listed` is false from now on if there is none."""
        new = self._replace(mark=token, listed=bool(self.inbox))
        if self.begun == 1 and (head := self.head) is not None:
            new = new.with_head(head.tries + 1, head.error)
        elif self.begun > 1:
            new = new._replace(careful=max(self.careful, self.begun))
        return new.beginning(1)

    def beginning(self, limit: int) -> ActorRecord:
        """So many messages may be begun before the next write; beyond those that are there only where it is several,
        because one alone is taken for the culprit if its worker dies."""
        several = limit > 1 and not self.careful
        return self._replace(begun=limit if several else min(limit, self.waiting, 1))

    def with_head(self, tries: int, error: str) -> ActorRecord:
        """With other marks of its first message."""
        if not self.inbox:
            return self
        head, end = self.message_at(0)
        return self._replace(inbox=InboxMessage(head.id, head.body, head.asked, tries, error).line() + self.inbox[end:])

    def without_first(self, state: str, handled: Sequence[Handled]) -> ActorRecord:
        """So many of its first messages are done."""
        count = len(handled)
        ids = self.ids + "".join([f"{quote(each.id)[1:-1]}\t" for each in handled])
        surplus = max(0, self.remembered + count - REMEMBERED_COUNT)
        if surplus:
            ids = "\t" + ids.split("\t", surplus + 1)[-1]
        outcomes = self.outcomes
        if outcomes != "{}" or any(each.answer is not None or each.error is not None for each in handled):
            outcomes = _outcomes({**json.loads(outcomes), **{each.id: each[1:] for each in handled}}, ids)
        return self._replace(
            state=state,
            inbox="\n" + self.inbox.split("\n", count + 1)[-1] if self.waiting > count else "",
            waiting=self.waiting - count,
            ids=ids,
            remembered=self.remembered + count - surplus,
            outcomes=outcomes,
            careful=max(0, self.careful - count),
        )

    def without_answers(self, message_ids: Iterable[str]) -> ActorRecord:
        """Somebody has fetched them."""
        outcomes = json.loads(self.outcomes)
        for message_id in message_ids:
            outcomes.pop(message_id, None)
        return self._replace(outcomes=_outcomes(outcomes, self.ids))

    def resting(self) -> ActorRecord:
        """Nothing is under way; `listed` is false if there is no message."""
        return self._replace(begun=0, listed=bool(self.inbox))

    def encode(self) -> bytes:
        numbers = (
            f"{self.told},{self.mark},{int(self.listed)},{self.waiting},{self.remembered},{self.begun},{self.careful}"
        )
        return f'["{LAYOUT}",{numbers}]\n{self.state}\n{self.outcomes}\n{self.ids}{self.inbox}'.encode("ascii")

    @classmethod
    def decode(cls, record: Record | None) -> ActorRecord:
        """An actor that is not there is a new one."""
        if record is None:
            return cls()
        try:
            numbers, state, outcomes, rest = record.data.decode("ascii").split("\n", 3)
            layout, told, mark, listed, *counts = json.loads(numbers)
            waiting, remembered, begun, careful = counts
            if layout != LAYOUT:
                raise ValueError(f"its layout is {layout!r}")
        except (ValueError, TypeError) as error:
            raise Misconfigured(
                f"the record {record.key!r} was not written by this version of holdfast ({error}); use the version "
                "that has written it"
            ) from error
        ids, feed, inbox = rest.partition("\n")
        return cls(state, feed + inbox, waiting, ids, remembered, outcomes, told, mark, bool(listed), begun, careful)


def _outcomes(found: dict[str, Iterable[str | None]], ids: str) -> str:
    """Without the oldest, if all together are too large, and without those that are no longer remembered."""
    size, kept = 0, dict[str, tuple[str | None, ...]]()
    for message_id, (answer, error) in reversed(found.items()):
        size += len(answer or "") + 6 * len(error or "")  # an answer is ASCII; an error is any text
        if size <= MAX_ANSWERS_BYTES and (answer, error) != (None, None) and f"\t{quote(message_id)[1:-1]}\t" in ids:
            kept[message_id] = (answer, error)
    return json.dumps(dict(reversed(kept.items())), separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class ActorView:
    """An actor as others see it."""

    key: str
    state: Any
    inbox: int
    """How many messages wait."""
    tries: int
    """How often the first of them has been tried."""
    error: str
    """Of its last try."""
    token: int
    """Of the worker that has claimed it last."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that could not be handled, and was put out of its actor's way."""

    key: str
    id: str
    message: Any
    tries: int
    error: str


def encode_value(value: object, limit: int, what: str) -> str:
    """As JSON text, in ASCII; raises `Misconfigured` for what cannot be kept."""
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise Misconfigured(f"{what} is what JSON can hold: {error}") from error
    if len(text) > limit:
        raise Misconfigured(f"{what} has {len(text)} bytes as JSON; at most {limit} are kept: keep a reference to it")
    return text
