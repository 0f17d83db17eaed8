"""Actors and dead letters, for those who look after them."""

from __future__ import annotations

import json

from .._core.coordinator_core import CoordinatorCore
from .._core.flow import Flow
from ..errors import Misconfigured
from ..model import check_name
from ..record import Record
from .actor_inbox import tell
from .actor_options import MAX_LETTER_ID_BYTES, ActorPlan, check_message_id
from .actor_record import ActorRecord, ActorView, DeadLetter, InboxMessage
from .records import records_of


def look(core: CoordinatorCore, plan: ActorPlan, key: str) -> Flow[ActorView | None]:
    """An actor as it is now; None if there is none."""
    plan.check_key(key)
    record = yield from records_of(core.backend, plan.name).read_record(plan.record_of(key))
    return None if record is None else _view(key, record)


def look_at_all(core: CoordinatorCore, plan: ActorPlan, after: str, limit: int) -> Flow[list[ActorView]]:
    """The actors of this name, in the order of their keys."""
    _check_limit(limit)
    if after:
        check_name(after, "after")
    prefix = plan.prefix
    found = yield from records_of(core.backend, plan.name).list_records(prefix, prefix + after if after else "", limit)
    return [_view(record.key[len(prefix) :], record) for record in found]


def dead_letters(core: CoordinatorCore, plan: ActorPlan, key: str | None, limit: int) -> Flow[list[DeadLetter]]:
    """The dead letters of an actor (None: of all), in the order of their keys."""
    _check_limit(limit)
    prefix = plan.dead_prefix if key is None else f"{plan.dead_prefix}{plan.check_key(key)}:"
    records, after, letters = records_of(core.backend, plan.name), "", list[DeadLetter]()
    while True:
        found = yield from records.list_records(prefix, after, limit)
        letters += [letter for letter in map(_letter, found) if key in (None, letter.key)]  # a key may hold a colon
        if len(found) < limit or len(letters) >= limit:
            return letters[:limit]
        after = found[-1].key


def retry(core: CoordinatorCore, plan: ActorPlan, key: str, message_id: str, timeout: float | None) -> Flow[bool]:
    """Tell a dead letter again, at the end of the inbox; False if there is none.

    Its new id is made of the record's version: repeated after a crash, it is the same message.
    """
    records, full = records_of(core.backend, plan.name), _dead_of(plan, key, message_id)
    record = yield from records.read_record(full)
    if record is None or not _is_of(key, record):
        return False
    body = json.loads(record.data)["body"]
    yield from tell(core, plan, key, InboxMessage(f"retry-{record.version:x}", body), timeout)
    yield from records.swap_record(full, record.version, None, "", 0.0, 1.0)
    return True


def drop(core: CoordinatorCore, plan: ActorPlan, key: str, message_id: str) -> Flow[bool]:
    """Remove a dead letter; False if there is none."""
    records, full = records_of(core.backend, plan.name), _dead_of(plan, key, message_id)
    while True:
        record = yield from records.read_record(full)
        if record is None or not _is_of(key, record):
            return False
        swapped = yield from records.swap_record(full, record.version, None, "", 0.0, 1.0)
        if swapped.done:
            return True


def _dead_of(plan: ActorPlan, key: str, message_id: str) -> str:
    return plan.dead_of(plan.check_key(key), check_message_id(message_id, MAX_LETTER_ID_BYTES))


def _is_of(key: str, record: Record) -> bool:
    """Whether it is a letter of this actor, and not of one whose key ends at another colon."""
    return bool(json.loads(record.data)["key"] == key)


def _view(key: str, record: Record) -> ActorView:
    found = ActorRecord.decode(record)
    head = found.head
    tries, error = (0, "") if head is None else (head.tries + (found.begun > 0), head.error)
    return ActorView(key, json.loads(found.state), found.waiting, tries, error, found.mark)


def _letter(record: Record) -> DeadLetter:
    fields = json.loads(record.data)
    return DeadLetter(fields["key"], fields["id"], json.loads(fields["body"]), fields["tries"], fields["error"])


def _check_limit(limit: int) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 1000:
        raise Misconfigured(f"limit is a whole number from 1 to 1000, not {limit!r}")
