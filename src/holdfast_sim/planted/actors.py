"""Bugs of actors."""

from __future__ import annotations

from typing import Any

from holdfast._core.flow import Flow
from holdfast.recipes import actor_worker
from holdfast.recipes.actor_record import ActorRecord, InboxMessage

from .registry import Patch, bug


@bug("no zombie is believed", "actors")
def the_mark_is_not_compared(patch: Patch) -> None:
    """A worker that came too late acknowledges what comes next."""
    patch(actor_worker, "_check_mark", lambda *given: None)


@bug("no effect is lost", "actors")
def a_zombie_writes_its_state(patch: Patch) -> None:
    """The mark is not compared, nor is it seen that the message was handled: the state of before is written."""

    def acknowledge(
        core: Any, plan: Any, claimed: Any, state: str, handled: Any, limit: int, within: float | None = None
    ) -> Flow[None]:
        def change(found: ActorRecord) -> ActorRecord:
            first = handled[: found.waiting]
            return (found.without_first(state, first) if first else found).beginning(limit)

        yield from actor_worker._change(core, plan, claimed, change, lambda found: False, plan.ttl)

    patch(actor_worker, "acknowledge", acknowledge)
    patch(actor_worker, "_check_mark", lambda *given: None)


@bug("an effect is done once", "actors")
def ids_are_not_remembered(patch: Patch) -> None:
    """A message whose reply was lost is told twice."""
    patch(ActorRecord, "knows", lambda self, message_id: False)


@bug("no message is forgotten", "actors")
def unlisted_whatever_it_is(patch: Patch) -> None:
    """An actor leaves the index, though somebody has entered it anew."""

    def unlist(records: Any, key: str, version: int) -> Flow[None]:
        found = yield from records.read_record(key)
        if found is not None:
            yield from records.swap_record(key, found.version, b"0", "", 0.0, 1.0)

    patch(actor_worker, "unlist", unlist)


@bug("messages stay in order", "actors")
def the_last_is_the_first(patch: Patch) -> None:
    """A new message goes to the front of the inbox."""

    def with_message(self: ActorRecord, message: InboxMessage) -> ActorRecord:
        return self._replace(
            inbox=message.line() + self.inbox, waiting=self.waiting + 1, told=self.told + 1, listed=True
        )

    patch(ActorRecord, "with_message", with_message)
