"""Tell and ask: messages come into an actor's inbox, and answers out of it. Flows over records.

1. A message is appended by one swap of the actor's record. It has an id: told again (a lost reply) it is the same
   message, as long as its id is remembered. Where that is no longer known the teller is told so: no message is
   ever told twice in silence.
2. Which actors have messages is kept in an index, a record per actor (`actor-ready:…`). **An inbox that is not empty is
   in the index**, whoever dies when:
   - The actor's record says whether it is `listed`. If it is not, a teller first writes the index, anew even if it is
     there, and then swaps the actor's record, `listed`, by the version that it had read before.
   - A worker reads the index, with its version, before it claims the actor, which is a write of its record, and writes
     `listed` as false with the message that empties the inbox (or with the claim, if it is empty). Only then it removes
     the index, by that version.
   So whoever has read the actor's record before that write cannot append; and whoever has read it after that has
   written the index anew, and the removal fails.
3. A full inbox pushes back: whoever tells waits until there is room, or its time is over.
4. Those of one coordinator who write to the same actor take turns, so that they do not conflict with each other. It is
   a courtesy: whoever has waited for long enough goes ahead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from .._core import backoff
from .._core.coordinator_core import CoordinatorCore
from .._core.flow import NOW, RANDOM, Flow, Sleep
from ..errors import BackendUnavailable, InboxFull, MessageFailed, NoAnswer, OutcomeUnknown
from ..ports import Records
from ..record import Record, Swapped, check_record
from .actor_options import KEEP_S, MAX_INBOX_BYTES, ActorPlan
from .actor_record import ActorRecord, Handled, InboxMessage
from .records import records_of

T = TypeVar("T")

TRIES_COUNT = 4
"""How often a request is tried while the engine is out of reach, before its caller is told."""
POLL_S, POLL_CAP_S = 0.005, 0.25
"""The first and the longest pause between two looks for room, or for an answer, in the first two seconds."""
TURN_S = 10.0
"""How long one waits for its turn among those of its own coordinator."""
LEAST_PAUSE_S = 0.001
"""What is left of a timeout may be too little for the clock to move."""
HASTE_COUNT = 3
"""So many conflicts in a row are answered at once; then with pauses."""
READY, REMOVED = b"1", b"0"
REMOVED_S = 1.0
"""A deleted record leaves its version for a day. One of the index is written as removed instead, and soon forgotten."""


def tell(core: CoordinatorCore, plan: ActorPlan, key: str, message: InboxMessage, timeout: float | None) -> Flow[None]:
    """Append a message to the inbox; raises `InboxFull` once `timeout` has passed."""
    began: float = yield NOW
    yield from _in_turn(core, plan.record_of(key), timeout, _tell(core, plan, key, message, timeout, began))


def _in_turn(core: CoordinatorCore, key: str, timeout: float | None, flow: Flow[T]) -> Flow[T]:
    """Run a flow after those that this coordinator has begun before it for the same record (rule 4)."""
    turns, me = core.turns.setdefault(key, deque()), object()
    turns.append(me)
    try:
        patience = TURN_S if timeout is None else min(timeout, TURN_S)
        began: float = yield NOW
        while turns[0] is not me and (yield NOW) - began < patience:
            yield Sleep(max(LEAST_PAUSE_S, min(POLL_CAP_S, turns.index(me) * LEAST_PAUSE_S)))
        return (yield from flow)
    finally:
        turns.remove(me)
        if not turns:
            core.turns.pop(key, None)


def _tell(
    core: CoordinatorCore, plan: ActorPlan, key: str, message: InboxMessage, timeout: float | None, began: float
) -> Flow[None]:
    records, full = records_of(core.backend, plan.name), plan.record_of(key)
    doubtful: int | None = None
    failures = conflicts = looks = 0
    record = yield from read(records, full)
    while True:
        found = ActorRecord.decode(record)
        if found.knows(message.id):
            return
        if doubtful is not None and doubtful < found.known_number:
            raise OutcomeUnknown(
                f"nobody knows whether {message.id!r} was told to {key!r} of {plan.name!r}: the reply was lost, and "
                "many messages have been handled since; look at the actor's state before you tell it again"
            )
        if not _has_room(found, message, plan):
            waited = (yield NOW) - began
            if timeout is not None and waited >= timeout:
                raise InboxFull(plan.name, key, len(found.inbox), waited)
            yield Sleep(pause_s(looks, timeout, waited, (yield RANDOM)))
            looks += 1
            record = yield from read(records, full)
            continue
        if not found.listed:
            yield from _list(records, plan.ready_of(key), message.id)
        new, expected = found.with_message(message), 0 if record is None else record.version
        try:
            swapped = yield from _swap(records, full, expected, new, message.id)
        except BackendUnavailable as error:
            failures += 1
            if isinstance(error, OutcomeUnknown):
                doubtful = new.told
            if failures == TRIES_COUNT:
                raise
            yield from backoff.pause(failures, base=0.05)
            record = yield from read(records, full)
            continue
        if swapped.done:
            return
        record, conflicts = swapped.record, conflicts + 1
        if conflicts > HASTE_COUNT:
            yield from backoff.pause(conflicts - HASTE_COUNT, base=0.002, cap=0.1)
            record = yield from read(records, full)


def look_for_answer(core: CoordinatorCore, plan: ActorPlan, key: str, message_id: str) -> Flow[str | None]:
    """The answer to a message, as JSON text; None while it is not handled."""
    records, full = records_of(core.backend, plan.name), plan.record_of(key)
    record = yield from read(records, full)
    if record is None or (fate := ActorRecord.decode(record).fate(message_id)) is None:
        return None
    return (yield from _in_turn(core, full, 0.25, _fetch(records, plan, key, message_id, record, fate)))


def pause_s(looks: int, timeout: float | None, waited: float, chance: float) -> float:
    """How long to wait before another look, within the timeout. Whoever has waited for long looks less often: many may
    do so."""
    seconds = chance * backoff.ceiling(looks, POLL_S, max(POLL_CAP_S, waited / 8))
    return max(LEAST_PAUSE_S, seconds if timeout is None else min(seconds, timeout - waited))


def _fetch(records: Records, plan: ActorPlan, key: str, message_id: str, record: Record, fate: Handled) -> Flow[str]:
    """The answer. It is removed from the record, if that can be done at once; else with newer ones."""
    if fate.error is not None:
        raise MessageFailed(plan.name, key, message_id, fate.error)
    if fate.answer is None:
        raise NoAnswer(plan.name, key, message_id, None)
    try:
        for _ in range(HASTE_COUNT):
            new = ActorRecord.decode(record).without_answer(message_id)
            swapped = yield from _swap(records, record.key, record.version, new, message_id)
            if swapped.done or swapped.record is None:
                break
            record = swapped.record
    except BackendUnavailable:
        pass
    return fate.answer


def read(records: Records, key: str) -> Flow[Record | None]:
    """What is there, however often it takes."""
    return (yield from retried(lambda: records.read_record(key)))


def retried(attempt: Callable[[], Flow[T]], within: float = 0.0) -> Flow[T]:
    """Make a request that does no harm when it is repeated: `TRIES_COUNT` times, and for so many seconds."""
    failures = 0
    began: float = yield NOW
    while True:
        try:
            return (yield from attempt())
        except BackendUnavailable:
            failures += 1
            if failures >= TRIES_COUNT and (yield NOW) - began >= within:
                raise
            yield from backoff.pause(failures, base=0.05)


def unlist(records: Records, key: str, version: int) -> Flow[None]:
    """Remove an actor without messages from the index, unless somebody has written it anew (rule 2)."""
    try:
        yield from records.swap_record(key, version, REMOVED, "", 0.0, REMOVED_S)
    except BackendUnavailable:
        pass  # somebody will find that there is nothing to do


def _list(records: Records, key: str, owner: str) -> Flow[None]:
    """Write the index anew."""
    expected = 0
    while True:
        swapped = yield from retried(partial(records.swap_record, key, expected, READY, owner, 0.0, KEEP_S))
        if swapped.done:
            return
        expected = 0 if swapped.record is None else swapped.record.version


def _swap(records: Records, key: str, expected: int, new: ActorRecord, owner: str) -> Flow[Swapped]:
    data = new.encode()
    check_record(key, data)
    return (yield from records.swap_record(key, expected, data, owner, 0.0, new.keep))


def _has_room(found: ActorRecord, message: InboxMessage, plan: ActorPlan) -> bool:
    return not found.inbox or (len(found.inbox) < plan.capacity and found.size() + len(message.body) <= MAX_INBOX_BYTES)
