"""Handle an actor's messages: claim it, acknowledge them one by one, let go of it. Flows over records.

1. A worker holds the actor's lock. It first claims the record: it writes its token as the mark, unless the mark is
   larger. Whatever it writes afterwards needs the mark to be its own: a zombie, whose lock was lost and whose actor was
   claimed by another worker, is refused (`FenceRejected`), and nothing is changed.
2. The write that acknowledges a message is the one that takes it from the inbox and sets the state. Messages that came
   meanwhile are kept: only the worker removes any.
3. A try is counted when it begins, by the claim or by the acknowledgement of the message before, which are written
   anyway: so a message that ends its process becomes a dead letter, too.
4. A dead letter is written before its message is removed, under the same id. Whoever finds the message after a crash
   in between does the same again, and does not handle it: its tries are used up.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .._core.coordinator_core import CoordinatorCore
from .._core.flow import Flow
from ..errors import FenceRejected
from ..record import Record, check_record
from .actor_inbox import READY, unlist
from .actor_options import KEEP_S, ActorPlan
from .actor_record import ERROR_BYTES, ActorRecord, Handled, InboxMessage
from .actor_store import ActorSwapped, in_turn, known, read_actor, retried, swap_actor
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
    """Claim an actor with the token of its lock (rule 1)."""
    records, full = records_of(core.backend, plan.name), plan.record_of(key)
    version, found = known(core, full) or (yield from read_actor(core, records, full))
    claimed = Claimed(key, token, owner, ready_version, version, found)
    _check_mark(plan, claimed, claimed.record, False)
    yield from _change(
        core, plan, claimed, lambda found: found.claimed(token), lambda found: found.mark == token, 0.0, marked=False
    )
    return claimed


def acknowledge(
    core: CoordinatorCore, plan: ActorPlan, claimed: Claimed, state: str, answer: str | None, begin: bool
) -> Flow[None]:
    """The first message is handled: take it from the inbox, with the new state. `begin` the next one, if there is."""
    head, number = _head(claimed), claimed.record.head_number
    yield from _remove(core, plan, claimed, number, state, Handled(head.id, answer), begin)


def note_failure(core: CoordinatorCore, plan: ActorPlan, claimed: Claimed, error: str, begin: bool) -> Flow[None]:
    """A try of the first message has failed. `begin` another one."""
    yield from _set_tries(core, plan, claimed, int(begin), error[:ERROR_BYTES], plan.ttl)


def take_back(core: CoordinatorCore, plan: ActorPlan, claimed: Claimed) -> Flow[None]:
    """A try that was begun is none: its worker was stopped."""
    yield from _set_tries(core, plan, claimed, -1, _head(claimed).error, 0.0)


def give_up(core: CoordinatorCore, plan: ActorPlan, claimed: Claimed, error: str, begin: bool) -> Flow[None]:
    """Make the first message a dead letter (rule 4)."""
    head, number = _head(claimed), claimed.record.head_number
    error = error[:ERROR_BYTES]
    letter = {"key": claimed.key, "id": head.id, "number": number, "body": head.body, "tries": head.tries}
    yield from _write_letter(core, plan, claimed, letter | {"error": error})
    handled = Handled(head.id, None, error if head.asked else None)
    yield from _remove(core, plan, claimed, number, claimed.record.state, handled, begin)


def let_go(core: CoordinatorCore, plan: ActorPlan, claimed: Claimed) -> Flow[None]:
    """If there are no messages, say so in the index."""
    if not claimed.record.inbox:
        records = records_of(core.backend, plan.name)
        yield from unlist(records, plan.ready_of(claimed.key), claimed.ready_version)


def _write_letter(core: CoordinatorCore, plan: ActorPlan, claimed: Claimed, letter: dict[str, object]) -> Flow[None]:
    """Under the id of the message; with its number, where another message had the same id long ago."""
    records, message_id = records_of(core.backend, plan.name), str(letter["id"])
    while True:
        key = plan.dead_of(claimed.key, str(letter["id"]))
        data = json.dumps(letter, separators=(",", ":")).encode()
        check_record(key, data)
        swapped = yield from retried(partial(records.swap_record, key, 0, data, claimed.owner, 0.0, KEEP_S), plan.ttl)
        if swapped.done or swapped.record is None:
            return
        found = json.loads(swapped.record.data)
        if (found["number"], found["body"]) == (letter["number"], letter["body"]) or letter["id"] != message_id:
            return  # by a try whose reply was lost, or by a worker that has died
        letter["id"] = f"{message_id}~{letter['number']}"


def _remove(
    core: CoordinatorCore,
    plan: ActorPlan,
    claimed: Claimed,
    number: int,
    state: str,
    handled: Handled,
    begin: bool,
) -> Flow[None]:
    def change(found: ActorRecord) -> ActorRecord:
        new = found.without_head(state, handled)
        return new.begun() if begin else new

    yield from _change(core, plan, claimed, change, lambda found: found.head_number > number, plan.ttl)


def _set_tries(
    core: CoordinatorCore, plan: ActorPlan, claimed: Claimed, by: int, error: str, within: float
) -> Flow[None]:
    number, tries = claimed.record.head_number, _head(claimed).tries + by

    def is_done(found: ActorRecord) -> bool:
        head = found.head
        return found.head_number != number or head is None or (head.tries, head.error) == (tries, error)

    yield from _change(core, plan, claimed, lambda found: found.with_head(tries, error), is_done, within)


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
        return (yield from swap_actor(core, records, full, claimed.version, new, claimed.owner))

    def changed() -> Flow[None]:
        if (seen := known(core, full)) is not None and seen.version > claimed.version:
            _check_mark(plan, claimed, seen.record, marked)
            claimed.version, claimed.record = seen
            if is_done(claimed.record):
                return
        while True:
            done, (claimed.version, claimed.record) = yield from retried(attempt, within)
            if done:
                return
            _check_mark(plan, claimed, claimed.record, marked)
            if is_done(claimed.record):
                return

    yield from in_turn(core, full, plan.ttl / 4, changed())


def _head(claimed: Claimed) -> InboxMessage:
    head = claimed.record.head
    assert head is not None, "there is a message"
    return head


def _check_mark(plan: ActorPlan, claimed: Claimed, found: ActorRecord, marked: bool) -> None:
    """The fence (rule 1). `marked`: the mark was ours before."""
    if found.mark > claimed.token or (marked and found.mark != claimed.token):
        raise FenceRejected(f"{plan.name}/{claimed.key}", claimed.token, found.mark or None)
