"""What is kept of an actor: the contents of its record, as data and as JSON.

1. One record holds the state, the inbox, the ids of what was handled last, answers, and the mark: the token of the
   worker that has claimed it. Each change is one swap, so taking a message, the new state, the acknowledgement and the
   answer are one write.
2. Values of the user's stand in it as JSON text, which is decoded for each try: a handler that has failed leaves no
   trace in the state that it was given.
3. Messages are numbered from 1 in the order of the inbox, without gaps. The inbox holds the last numbers, `handled` the
   ones before: whether a number was ever told can be known as long as it is in one of them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..errors import Misconfigured
from ..record import Record
from .actor_options import FORGET_S, KEEP_S, MAX_ANSWERS_BYTES

REMEMBERED_COUNT = 256
"""How many ids of handled messages are remembered, so that a message that is told again is not handled again."""
MESSAGE_BYTES = 128
"""What a message takes in the record beside its body, its id most of all."""
ERROR_BYTES = 500


@dataclass(frozen=True, slots=True)
class InboxMessage:
    """A message in an inbox. `tries` counts how often its handling has begun."""

    id: str
    body: str
    asked: bool = False
    """Whether somebody waits for the answer."""
    tries: int = 0
    error: str = ""
    """Of the last try."""


@dataclass(frozen=True, slots=True)
class Handled:
    """What has left the inbox. `answer` is kept until it is fetched; `error` if it became a dead letter."""

    id: str
    answer: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ActorRecord:
    """An actor as it is kept."""

    state: str = "null"
    inbox: tuple[InboxMessage, ...] = ()
    handled: tuple[Handled, ...] = ()
    told: int = 0
    """The number of the last message in the inbox."""
    mark: int = 0
    listed: bool = False
    """Whether a record of the index of actors with messages stands for it (see `actor_inbox`)."""

    @property
    def head(self) -> InboxMessage | None:
        """The message whose turn it is."""
        return self.inbox[0] if self.inbox else None

    @property
    def head_number(self) -> int:
        """Its number, or the one that the next message will have."""
        return self.told - len(self.inbox) + 1

    @property
    def known_number(self) -> int:
        """The lowest number of which it is known what became of it."""
        return self.head_number - len(self.handled)

    @property
    def keep(self) -> float:
        """For how long the record is kept without another write."""
        return FORGET_S if self.state == "null" and not self.inbox else KEEP_S

    def size(self) -> int:
        """The bytes of the inbox, and what each message takes beside its body."""
        return sum(len(message.body) + MESSAGE_BYTES for message in self.inbox)

    def knows(self, message_id: str) -> bool:
        """Whether a message with this id waits in the inbox, or was handled lately."""
        return any(each.id == message_id for each in self.inbox) or self.fate(message_id) is not None

    def fate(self, message_id: str) -> Handled | None:
        """What became of a message; None while it waits, or if it is not known."""
        return next((each for each in self.handled if each.id == message_id), None)

    def with_message(self, message: InboxMessage) -> ActorRecord:
        return replace(self, inbox=(*self.inbox, message), told=self.told + 1, listed=True)

    def claimed(self, token: int) -> ActorRecord:
        """Marked by a worker, which begins with the first message. `listed` is false from now on if there is none."""
        return replace(self, mark=token, listed=bool(self.inbox)).begun()

    def begun(self) -> ActorRecord:
        """Its first message is being tried once more."""
        return self.with_head(tries=self.inbox[0].tries + 1) if self.inbox else self

    def with_head(self, **changes: Any) -> ActorRecord:
        return replace(self, inbox=(replace(self.inbox[0], **changes), *self.inbox[1:])) if self.inbox else self

    def without_head(self, state: str, handled: Handled) -> ActorRecord:
        """Its first message is done."""
        known = (*self.handled, handled)[-REMEMBERED_COUNT:]
        return replace(self, state=state, inbox=self.inbox[1:], handled=_bounded(known), listed=len(self.inbox) > 1)

    def without_answer(self, message_id: str) -> ActorRecord:
        """Somebody has fetched the answer."""
        kept = tuple(Handled(each.id) if each.id == message_id else each for each in self.handled)
        return replace(self, handled=kept)

    def encode(self) -> bytes:
        fields = asdict(self)
        fields["inbox"] = [[m.id, m.body, int(m.asked), m.tries, m.error] for m in self.inbox]
        fields["handled"] = [
            each.id if each.answer is None and each.error is None else [each.id, each.answer, each.error]
            for each in self.handled
        ]
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, record: Record | None) -> ActorRecord:
        """An actor that is not there is a new one."""
        if record is None:
            return cls()
        try:
            fields = json.loads(record.data)
            fields["inbox"] = tuple(
                InboxMessage(name, body, bool(asked), tries, error)
                for name, body, asked, tries, error in fields["inbox"]
            )
            fields["handled"] = tuple(
                Handled(each) if isinstance(each, str) else Handled(*each) for each in fields["handled"]
            )
            return cls(**fields)
        except (ValueError, KeyError, TypeError) as error:
            raise Misconfigured(
                f"the record {record.key!r} was not written by this version of holdfast ({error}); use the version "
                "that has written it"
            ) from error


def _bounded(handled: tuple[Handled, ...]) -> tuple[Handled, ...]:
    """Without the oldest answers and errors, if all together are too large."""
    size, kept = 0, []
    for each in reversed(handled):
        size += len(each.answer or "") + 6 * len(each.error or "")  # an answer is ASCII; an error is any text
        kept.append(each if size <= MAX_ANSWERS_BYTES else Handled(each.id))
    return tuple(reversed(kept))


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
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Misconfigured(f"{what} is what JSON can hold: {error}") from error
    if len(text) > limit:
        raise Misconfigured(f"{what} has {len(text)} bytes as JSON; at most {limit} are kept: keep a reference to it")
    return text
