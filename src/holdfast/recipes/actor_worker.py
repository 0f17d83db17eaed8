"""Handle an actor's messages: claim it, acknowledge them one by one or in groups, let go of it. Flows over records.

1. A worker holds the actor's lock. It first claims the record: it writes its token as the mark, unless the mark is
   larger. Whatever it writes afterwards needs the mark to be its own: a zombie, whose lock was lost and whose actor was
   claimed by another worker, is refused (`FenceRejected`), and nothing is changed.
2. The write that acknowledges messages is the one that takes them from the inbox and sets the state. Those that came
   meanwhile are kept: only the worker removes any.
3. Before a message is begun it is written that it may be (`begun`), with the claim or the acknowledgement before.
   Whoever claims the actor of a worker that has died finds it there. One message has had a try: one that ends its
   process becomes a dead letter, too. Of several nobody knows which it was: none has had a try, and as many messages
   are begun one at a time from then on (`careful`). So none is charged for another, and none is tried for ever.
4. A dead letter is written before its message is removed, under the same id. Whoever finds the message after a crash
   in between does the same again, and does not handle it: its tries are used up.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from .._core.coordinator_core import CoordinatorCore
from .._core.flow import Flow
from ..errors import FenceRejected
from ..model import Claim, LockSpec
from ..record import Record, check_record
from .actor_inbox import READY, unlist
from .actor_options import KEEP_S, ActorPlan
from .actor_record import ERROR_BYTES, ActorRecord, Handled
from .actor_store import WRITE_TURN_S, ActorSwapped, in_turn, known, read_actor, retried, swap_actor
from .records import records_of

PAGE_COUNT = 100
"""How many actors with messages are read at once."""


@dataclass(slots=True)
class Claimed:
    """An actor that this worker has claimed, as it was written or read last."""

    key: str
    token: int
    owner: str
    ready_version: int
    """Of the record of the index that led here."""
    version: int
    record: ActorRecord
    foreign: bool = False
    """Whether others than this coordinator may tell it something."""
    fetched: list[str] = field(default_factory=list)
    """Whose answers were fetched, and can be removed with the next write."""


def ready(core: CoordinatorCore, plan: ActorPlan, after: str) -> Flow[list[Record]]:
    """A page of the index: actors with messages, behind this one."""
    prefix = plan.ready_prefix
    return (
        yield from records_of(core.backend, plan.name).list_records(prefix, prefix + after if after else "", PAGE_COUNT)
    )


def is_ready(record: Record) -> bool:
    return record.data == READY


def claim(
    core: CoordinatorCore, plan: ActorPlan, key: str, ready_version: int, token: int, owner: str
) -> Flow[Claimed]:
    """Claim an actor with the token of its lock (rule 1), and begin with its first message."""
    records, full = records_of(core.backend, plan.name), plan.record_of(key)
    seen = known(core, full)
    claimed = Claimed(key, token, owner, ready_version, *(seen or (yield from read_actor(core, records, full))))
    claimed.foreign = seen is None
    yield from _change(
        core, plan, claimed, lambda found: found.claimed(token), lambda found: found.mark == token, 0.0, marked=False
    )
    return claimed


def refresh(core: CoordinatorCore, plan: ActorPlan, claimed: Claimed, read: bool = False) -> Flow[None]:
    """See what came meanwhile: what this coordinator knows, or else (or if it is to `read`) what is there."""
    records, full = records_of(core.backend, plan.name), plan.record_of(claimed.key)
    seen = (None if read else known(core, full)) or (yield from read_actor(core, records, full))
    if seen.version > claimed.version:
        _check_mark(core, plan, claimed, seen.record, True)
        claimed.version, claimed.record = seen


def acknowledge(
    core: CoordinatorCore,
    plan: ActorPlan,
    claimed: Claimed,
    state: str,
    handled: Sequence[Handled],
    limit: int,
    within: float | None = None,
) -> Flow[None]:
    """The first messages are handled: take them from the inbox, with the new state. Begin with `limit` others."""
    number = claimed.record.head_number

    def change(found: ActorRecord) -> ActorRecord:
        left = found.without_first(state, handled) if handled and found.head_number == number else found
        return left.beginning(limit)

    def is_done(found: ActorRecord) -> bool:
        return not (handled and found.head_number == number) and found.begun == found.beginning(limit).begun

    yield from _change(core, plan, claimed, change, is_done, plan.ttl if within is None else within)


def note_failure(core: CoordinatorCore, plan: ActorPlan, claimed: Claimed, error: str) -> Flow[None]:
    """A try of the first message has failed; nothing is under way."""
    head, number = claimed.record.head, claimed.record.head_number
    assert head is not None, "a message has failed"
    tries = head.tries + 1

    def is_done(found: ActorRecord) -> bool:
        head = found.head
        return found.head_number != number or head is None or head.tries == tries

    def change(found: ActorRecord) -> ActorRecord:
        return found.with_head(tries, error[:ERROR_BYTES]).beginning(0)

    yield from _change(core, plan, claimed, change, is_done, plan.ttl)


def give_up(
    core: CoordinatorCore, plan: ActorPlan, claimed: Claimed, tries: int, error: str, limit: int
) -> Flow[Handled]:
    """Make the first message a dead letter (rule 4)."""
    head = claimed.record.head
    assert head is not None, "a message has failed"
    error = error[:ERROR_BYTES]
    letter = {"key": claimed.key, "id": head.id, "number": claimed.record.head_number, "body": head.body}
    yield from _write_letter(core, plan, claimed, letter | {"tries": tries, "error": error})
    handled = Handled(head.id, None, error if head.asked else None)
    yield from acknowledge(core, plan, claimed, claimed.record.state, [handled], limit)
    return handled


def let_go(core: CoordinatorCore, plan: ActorPlan, claimed: Claimed) -> Flow[None]:
    """Nothing is under way any more. If there are no messages, say so in the index."""

    def is_done(found: ActorRecord) -> bool:
        return found.resting() == found and not claimed.fetched

    if not is_done(claimed.record):
        yield from _change(core, plan, claimed, ActorRecord.resting, is_done, 0.0)
    if not claimed.record.inbox:
        records = records_of(core.backend, plan.name)
        yield from unlist(records, plan.ready_of(claimed.key), claimed.ready_version)


def _write_letter(core: CoordinatorCore, plan: ActorPlan, claimed: Claimed, letter: dict[str, object]) -> Flow[None]:
    """Under the id of the message; with its number (and then others), where another message had the same id long ago,
    or the same key and id with the colon at another place."""
    records, message_id = records_of(core.backend, plan.name), str(letter["id"])
    for count in itertools.count():
        if count:
            letter["id"] = f"{message_id}~{letter['number']}" + (f".{count}" if count > 1 else "")
        key = plan.dead_of(claimed.key, str(letter["id"]))
        data = json.dumps(letter, separators=(",", ":")).encode()
        check_record(key, data)
        swapped = yield from retried(partial(records.swap_record, key, 0, data, claimed.owner, 0.0, KEEP_S), plan.ttl)
        if swapped.done or swapped.record is None:
            return
        found = json.loads(swapped.record.data)
        if all(found[each] == letter[each] for each in ("key", "number", "body")):
            return  # by a try whose reply was lost, or by a worker that has died


def _change(
    core: CoordinatorCore,
    plan: ActorPlan,
    claimed: Claimed,
    change: Callable[[ActorRecord], ActorRecord],
    is_done: Callable[[ActorRecord], bool],
    within: float,
    marked: bool = True,
) -> Flow[None]:
    """Change the record of a claimed actor, however often it takes. `is_done`: a write whose reply was lost did it."""
    records, full = records_of(core.backend, plan.name), plan.record_of(claimed.key)

    def attempt() -> Flow[ActorSwapped]:
        new = change(claimed.record)
        if claimed.fetched:
            new = new.without_answers(claimed.fetched)
        return (yield from swap_actor(core, records, full, claimed.version, new, claimed.owner))

    def changed() -> Flow[None]:
        if (seen := known(core, full)) is not None and seen.version > claimed.version:
            _check_mark(core, plan, claimed, seen.record, marked)
            claimed.version, claimed.record = seen
            if is_done(claimed.record):
                return
        _check_mark(core, plan, claimed, claimed.record, marked)
        while True:
            done, (claimed.version, claimed.record) = yield from retried(attempt, within)
            if done:
                claimed.fetched.clear()
                return
            claimed.foreign = True
            _check_mark(core, plan, claimed, claimed.record, marked)
            if is_done(claimed.record):
                return

    yield from in_turn(core, full, min(plan.ttl / 4, WRITE_TURN_S), changed())


def _check_mark(core: CoordinatorCore, plan: ActorPlan, claimed: Claimed, found: ActorRecord, marked: bool) -> None:
    """The fence (rule 1). `marked`: the mark was ours before."""
    if found.mark > claimed.token or (marked and found.mark != claimed.token):
        if core.observer is not None:
            claim = Claim(LockSpec(plan.name, plan.ttl), claimed.owner, "", claimed.token)
            lock = plan.lock_of(claimed.key)
            core.observer.refused(claim, claimed.token, 0.0, found.mark or None, "actor", lock)
        raise FenceRejected(f"{plan.name}/{claimed.key}", claimed.token, found.mark or None)
