"""An actor's record at the engine: read, swapped, remembered, and written in turn. Flows over records.

1. Whoever has read or written an actor's record remembers it, with its version, for all of its coordinator. The next
   one swaps by that version and reads nothing. A version stands for one content, for ever (`holdfast.record`): a swap
   by a remembered one is as good as by one that was just read; if it is no longer there, the reply tells what is.
2. Those of one coordinator who write to the same actor take turns, so that they do not conflict with each other. It is
   a courtesy: whoever has waited for long enough goes ahead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from .._core import backoff
from .._core.actor_exchange import Turn
from .._core.coordinator_core import CoordinatorCore
from .._core.flow import NEW_EVENT, NOW, Flow, WaitEvent
from ..errors import BackendUnavailable
from ..ports import Records
from ..record import Record, check_record
from .actor_record import ActorRecord

T = TypeVar("T")

TRIES_COUNT = 4
"""How often a request is tried while the engine is out of reach, before its caller is told."""
TURN_S, WRITE_TURN_S = 10.0, 1.0
"""How long one waits for its turn among those of its own coordinator: to tell, and for each write."""
KNOWN_COUNT = 256
KNOWN_BYTES = 64 * 1024
"""So many records are remembered, each of at most this size."""


class SeenActor(NamedTuple):
    """What is there, and its version; 0: nothing is."""

    version: int
    record: ActorRecord


class ActorSwapped(NamedTuple):
    """Whether it was written; and what is there now."""

    done: bool
    seen: SeenActor


def known(core: CoordinatorCore, key: str) -> SeenActor | None:
    """The record as somebody of this coordinator has seen it last."""
    seen = core.actors.known.get(key)
    return seen if isinstance(seen, SeenActor) else None


def read_actor(core: CoordinatorCore, records: Records, key: str) -> Flow[SeenActor]:
    """What is there, however often it takes."""
    record = yield from retried(lambda: records.read_record(key))
    return _remember(core, key, record, ActorRecord.decode(record))


def swap_actor(
    core: CoordinatorCore, records: Records, key: str, expected: int, new: ActorRecord, owner: str
) -> Flow[ActorSwapped]:
    """Write if this version is there."""
    data = new.encode()
    check_record(key, data)
    swapped = yield from records.swap_record(key, expected, data, owner, 0.0, new.keep)
    record = swapped.record
    return ActorSwapped(swapped.done, _remember(core, key, record, new if swapped.done else ActorRecord.decode(record)))


def _remember(core: CoordinatorCore, key: str, record: Record | None, found: ActorRecord) -> SeenActor:
    if record is None or len(record.data) > KNOWN_BYTES:
        core.actors.known.pop(key, None)
        return SeenActor(0 if record is None else record.version, found)
    if len(core.actors.known) >= KNOWN_COUNT and key not in core.actors.known:
        core.actors.known.clear()
    seen = core.actors.known[key] = SeenActor(record.version, found)
    return seen


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


def in_turn(core: CoordinatorCore, key: str, patience: float, flow: Flow[T]) -> Flow[T]:
    """Run a flow after those that this coordinator has begun before it for the same record (rule 2)."""
    turns, me = core.actors.turns.setdefault(key, deque()), Turn()
    turns.append(me)
    try:
        if turns[0] is not me:
            me.event = yield NEW_EVENT
            began: float = yield NOW
            while turns[0] is not me and (left := began + min(patience, TURN_S) - (yield NOW)) > 0:
                yield WaitEvent(me.event, left)
        return (yield from flow)
    finally:
        turns.remove(me)
        try:
            next_one = turns[0]
        except IndexError:  # another thread may just have removed the last one
            core.actors.turns.pop(key, None)
        else:
            if next_one.event is not None:
                next_one.event.set()
