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
4. What the coordinator knows of the actor need not be read (`actor_store`). Before a teller waits for room, or takes a
   message for one that was told already, it reads the record all the same.
"""

from __future__ import annotations

from functools import partial

from .._core import backoff
from .._core.coordinator_core import CoordinatorCore
from .._core.flow import NOW, RANDOM, Flow, Sleep
from ..errors import BackendUnavailable, InboxFull, MessageFailed, NoAnswer, OutcomeUnknown
from ..ports import Records
from .actor_options import KEEP_S, MAX_INBOX_BYTES, ActorPlan
from .actor_record import ActorRecord, InboxMessage
from .actor_store import (
    TRIES_COUNT,
    TURN_S,
    WRITE_TURN_S,
    ActorSwapped,
    SeenActor,
    in_turn,
    known,
    read_actor,
    retried,
    swap_actor,
)
from .records import records_of

POLL_S, POLL_CAP_S = 0.005, 0.25
"""The first and the longest pause between two looks for room, or for an answer, in the first two seconds."""
LEAST_PAUSE_S = 0.001
"""What is left of a timeout may be too little for the clock to move."""
HASTE_COUNT = 3
"""So many conflicts in a row are answered at once; then with pauses."""
READY, REMOVED = b"1", b"0"
REMOVED_S = 1.0
"""A deleted record leaves its version for a day. One of the index is written as removed instead, and soon forgotten."""


def tell(core: CoordinatorCore, plan: ActorPlan, key: str, message: InboxMessage, timeout: float | None) -> Flow[None]:
    """Append a message to the inbox; raises `InboxFull` once `timeout` has passed.

    Tellers have turns of their own: one that waits for room is not in the way of the worker that makes some.
    """
    began: float = yield NOW
    patience = TURN_S if timeout is None else timeout
    yield from in_turn(core, plan.ready_of(key), patience, _tell(core, plan, key, message, timeout, began))


def _tell(
    core: CoordinatorCore, plan: ActorPlan, key: str, message: InboxMessage, timeout: float | None, began: float
) -> Flow[None]:
    records, full = records_of(core.backend, plan.name), plan.record_of(key)
    doubtful: int | None = None
    failures = conflicts = looks = 0
    wait = WRITE_TURN_S if timeout is None else min(timeout, WRITE_TURN_S)
    seen = known(core, full)
    while True:
        if fresh := seen is None:
            seen = yield from read_actor(core, records, full)
        found = seen.record
        told, room = found.knows(message.id), _has_room(found, message, plan)
        if not fresh and (told or not room):
            seen = None
            continue
        if told:
            return
        if doubtful is not None and doubtful < found.known_number:
            raise OutcomeUnknown(
                f"nobody knows whether {message.id!r} was told to {key!r} of {plan.name!r}: the reply was lost, and "
                "many messages have been handled since; look at the actor's state before you tell it again"
            )
        if not room:
            waited = (yield NOW) - began
            if timeout is not None and waited >= timeout:
                raise InboxFull(plan.name, key, found.waiting, waited)
            yield Sleep(pause_s(looks, timeout, waited, (yield RANDOM)))
            looks += 1
            seen = None
            continue
        try:
            done, seen = yield from in_turn(core, full, wait, _append(core, records, plan, key, message, seen))
        except BackendUnavailable as error:
            failures += 1
            if isinstance(error, OutcomeUnknown):
                doubtful = found.told + 1  # or higher
            if failures == TRIES_COUNT:
                raise
            yield from backoff.pause(failures, base=0.05)
            seen = None
            continue
        if done:
            return
        conflicts += 1
        if conflicts > HASTE_COUNT:
            yield from backoff.pause(conflicts - HASTE_COUNT, base=0.002, cap=0.1)
            seen = None


def _append(
    core: CoordinatorCore, records: Records, plan: ActorPlan, key: str, message: InboxMessage, seen: SeenActor
) -> Flow[ActorSwapped]:
    """Append to what was seen; or to what somebody of this coordinator has seen since."""
    full = plan.record_of(key)
    latest = known(core, full)
    if latest is not None and latest.version > seen.version:
        if latest.record.knows(message.id) or not _has_room(latest.record, message, plan):
            return ActorSwapped(False, latest)
        seen = latest
    if not seen.record.listed:
        yield from _list(records, plan.ready_of(key), message.id)
    return (yield from swap_actor(core, records, full, seen.version, seen.record.with_message(message), message.id))


def look_for_answer(core: CoordinatorCore, plan: ActorPlan, key: str, message_id: str) -> Flow[str | None]:
    """The answer to a message that was told, as JSON text; None while it is not handled.

    One of which nothing is known any more was handled, and many others after it: it would be waited for in vain.
    """
    records, full = records_of(core.backend, plan.name), plan.record_of(key)
    seen = yield from read_actor(core, records, full)
    if (fate := seen.record.fate(message_id)) is None:
        if seen.record.knows(message_id):
            return None
        raise NoAnswer(plan.name, key, message_id, None)
    if fate.error is not None:
        raise MessageFailed(plan.name, key, message_id, fate.error)
    if fate.answer is None:
        raise NoAnswer(plan.name, key, message_id, None)
    yield from in_turn(core, full, POLL_CAP_S, _forget_answer(core, records, full, message_id, seen))
    return fate.answer


def pause_s(looks: int, timeout: float | None, waited: float, chance: float) -> float:
    """How long to wait before another look, within the timeout. Whoever has waited for long looks less often: many may
    do so."""
    seconds = chance * backoff.ceiling(looks, POLL_S, max(POLL_CAP_S, waited / 8))
    return max(LEAST_PAUSE_S, seconds if timeout is None else min(seconds, timeout - waited))


def _forget_answer(core: CoordinatorCore, records: Records, key: str, message_id: str, seen: SeenActor) -> Flow[None]:
    """Somebody has fetched it. It is removed, if that can be done at once; else with newer ones."""
    try:
        for _ in range(HASTE_COUNT):
            version, found = known(core, key) or seen
            new = found.without_answers([message_id])
            done, seen = yield from swap_actor(core, records, key, version, new, message_id)
            if done or not seen.version:
                break
    except BackendUnavailable:
        pass


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


def _has_room(found: ActorRecord, message: InboxMessage, plan: ActorPlan) -> bool:
    size = len(found.inbox) + len(message.line())
    return not found.inbox or (found.waiting < plan.capacity and size <= MAX_INBOX_BYTES)
