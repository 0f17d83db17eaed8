"""What is asked of actors, checked before anything is sent; where their records are, and how large they may become.

An actor's record is at most 1 MiB (`holdfast.record`). JSON in JSON takes twice its length at worst: the limits below
add up to less than half of that, so that a message can always be acknowledged, whatever is told meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Misconfigured
from ..model import check_name, check_seconds
from ..record import check_record

MAX_STATE_BYTES = 256 * 1024
MAX_INBOX_BYTES = 128 * 1024
MAX_MESSAGE_BYTES = 64 * 1024
MAX_ANSWER_BYTES = 32 * 1024
MAX_ANSWERS_BYTES = 64 * 1024
"""Of all answers of an actor that nobody has fetched yet; the oldest are dropped."""
MAX_ID_BYTES = 64
MAX_LETTER_ID_BYTES = MAX_ID_BYTES + 24
"""The id of a dead letter may have a number behind it."""
MAX_CAPACITY_COUNT = 1000
MAX_CONCURRENCY_COUNT = 1000
KEEP_S = 365 * 86400.0
"""How long an actor with a state is kept after its last message, and a dead letter after it was put there."""
FORGET_S = 600.0
"""How long an actor without a state and without messages is kept, for the ids of what it has handled."""


@dataclass(frozen=True, slots=True)
class ActorPlan:
    """What was asked of `actors`, checked."""

    name: str
    ttl: float
    concurrency: int
    capacity: int
    tries: int
    backoff: float

    @property
    def prefix(self) -> str:
        return f"actor:{self.name}:"

    @property
    def ready_prefix(self) -> str:
        return f"actor-ready:{self.name}:"

    @property
    def dead_prefix(self) -> str:
        return f"actor-dead:{self.name}:"

    def check_key(self, key: str) -> str:
        """Raises `Misconfigured` for what is no key of an actor."""
        check_name(key, "key")
        check_record(f"{self.dead_prefix}{key}:{'x' * MAX_LETTER_ID_BYTES}", b"")
        return key

    def record_of(self, key: str) -> str:
        """The key of the actor's record."""
        return self.prefix + key

    def ready_of(self, key: str) -> str:
        """The key of the record that says that the actor has messages."""
        return self.ready_prefix + key

    def dead_of(self, key: str, message_id: str) -> str:
        """The key of the record of a dead letter."""
        return f"{self.dead_prefix}{key}:{message_id}"

    def lock_of(self, key: str) -> str:
        """The name of the lock that is held while an actor handles messages; no name of actors has a colon."""
        return f"actors/{self.name}:{key}"


def plan_actors(name: str, *, ttl: float, concurrency: int, capacity: int, tries: int, backoff: float) -> ActorPlan:
    """Check the options of `actors`."""
    check_name(name)
    if ":" in name:
        raise Misconfigured(f"the name {name!r} of actors has a colon, which separates it from its keys; leave it out")
    check_seconds("ttl", ttl, name, above=0)
    check_seconds("backoff", backoff, name)
    _check_count("concurrency", concurrency, name, MAX_CONCURRENCY_COUNT)
    _check_count("capacity", capacity, name, MAX_CAPACITY_COUNT)
    _check_count("tries", tries, name, 1000)
    plan = ActorPlan(name, ttl, concurrency, capacity, tries, backoff)
    plan.check_key("k")
    return plan


def check_message_id(message_id: str, most: int = MAX_ID_BYTES) -> str:
    """An id is a name of at most 64 bytes."""
    check_name(message_id, "message_id")
    if len(message_id.encode()) > most:
        raise Misconfigured(f"the message_id {message_id[:40]!r}… is longer than {most} bytes; use a hash of it")
    return message_id


def _check_count(what: str, value: int, name: str, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise Misconfigured(f"{what} of {name!r} is a whole number from 1 to {most}, not {value!r}")
