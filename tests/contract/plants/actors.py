"""Bugs of actors: messages that are lost, doubled or out of order, and zombies that are believed."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest

from holdfast._core.flow import NOW, Flow
from holdfast.aio import actor_system, coordinator
from holdfast.recipes import actor_inbox, actor_worker
from holdfast.recipes.actor_options import ActorPlan, plan_actors
from holdfast.recipes.actor_record import ActorRecord, Handled
from tests.contract.plants.plant import plant


@plant("actors.one_at_a_time_and_in_order")
def the_newest_message_comes_first(patch: pytest.MonkeyPatch) -> None:
    def with_message(self: ActorRecord, message: Any) -> ActorRecord:
        return self._replace(
            inbox=message.line() + self.inbox, waiting=self.waiting + 1, told=self.told + 1, listed=True
        )

    patch.setattr(ActorRecord, "with_message", with_message)


@plant("actors.one_at_a_time_and_in_order")
def every_worker_has_a_lock_of_its_own(patch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count()
    patch.setattr(ActorPlan, "lock_of", lambda self, key: f"{key}/{next(numbers)}")


@plant("actors.an_actor_answers")
def an_actor_counts_as_listed_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ActorRecord, "resting", lambda self: self._replace(begun=0))


@plant("actors.an_actor_answers", "actors.a_lost_reply_does_not_repeat_the_effect")
def the_state_is_not_written(patch: pytest.MonkeyPatch) -> None:
    real = ActorRecord.without_first
    patch.setattr(ActorRecord, "without_first", lambda self, state, handled: real(self, self.state, handled))


@plant("actors.a_late_answer_can_be_fetched")
def answers_are_not_kept(patch: pytest.MonkeyPatch) -> None:
    real = ActorRecord.without_first

    def without_first(self: ActorRecord, state: str, handled: Any) -> ActorRecord:
        return real(self, state, [Handled(each.id) for each in handled])

    patch.setattr(ActorRecord, "without_first", without_first)


@plant("actors.at_most_so_many_at_once")
def as_many_as_there_are(patch: pytest.MonkeyPatch) -> None:
    real = plan_actors
    patch.setattr(coordinator, "plan_actors", lambda *given, **options: replace(real(*given, **options), concurrency=9))


@plant("actors.a_message_is_told_once")
def ids_are_not_remembered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ActorRecord, "knows", lambda self, message_id: False)


@plant("actors.a_lost_reply_does_not_repeat_the_effect")
def a_lost_acknowledgement_is_written_again(patch: pytest.MonkeyPatch) -> None:
    """Each message adds 1 to the state: so does the second write."""

    def acknowledge(
        core: Any, plan: Any, claimed: Any, state: str, handled: Any, limit: int, within: float | None = None
    ) -> Any:
        number = claimed.record.head_number

        def change(found: ActorRecord) -> ActorRecord:
            if handled and found.head_number != number:
                return found._replace(state=str(int(found.state) + len(handled)))
            return found.without_first(state, handled).beginning(limit)

        return actor_worker._change(core, plan, claimed, change, lambda found: False, plan.ttl)

    patch.setattr(actor_worker, "acknowledge", acknowledge)


@plant("actors.a_zombie_cannot_acknowledge")
def the_mark_is_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(actor_worker, "_check_mark", lambda *given: None)


@plant("actors.a_poisonous_message_is_put_out_of_the_way")
def a_poisonous_message_is_thrown_away(patch: pytest.MonkeyPatch) -> None:
    def write_letter(*given: object) -> Flow[None]:
        yield NOW

    patch.setattr(actor_worker, "_write_letter", write_letter)


@plant("actors.a_poisonous_message_is_put_out_of_the_way")
def a_failed_try_leaves_its_state(patch: pytest.MonkeyPatch) -> None:
    real = ActorRecord.with_head
    patch.setattr(ActorRecord, "with_head", lambda *given: real(*given)._replace(state='["?"]'))


@plant("actors.a_full_inbox_pushes_back")
def there_is_always_room(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(actor_inbox, "_has_room", lambda *given: True)


@plant("actors.what_cannot_be_told_is_refused")
def anything_can_be_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(actor_system, "encode_value", lambda value, limit, what: json.dumps(value, default=str))
