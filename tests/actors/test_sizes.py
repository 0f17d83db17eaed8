"""Whatever an actor is told, its record fits: a message can always be acknowledged."""

from __future__ import annotations

import json

import pytest

import holdfast
from holdfast.recipes.actor_inbox import _has_room
from holdfast.recipes.actor_options import (
    MAX_ANSWER_BYTES,
    MAX_ID_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_STATE_BYTES,
    plan_actors,
)
from holdfast.recipes.actor_record import REMEMBERED_COUNT, ActorRecord, Handled, InboxMessage, encode_value
from holdfast.record import MAX_RECORD_BYTES

PLAN = plan_actors("lists", ttl=1.0, concurrency=1, capacity=1000, tries=1, backoff=0.0)
IDS = ['"' * MAX_ID_BYTES, "é" * (MAX_ID_BYTES // 2), "🐘" * (MAX_ID_BYTES // 4), "i"]


def largest(limit: int) -> str:
    """JSON text of that length, which grows most when it is put into JSON."""
    text = json.dumps('"' * (limit // 2 - 1))
    assert limit - 2 <= len(text) <= limit
    return text


@pytest.mark.parametrize("message_id", IDS)
@pytest.mark.parametrize(
    "body", [largest(MAX_MESSAGE_BYTES), largest(1000), largest(130), "1"], ids=["large", "medium", "small", "tiny"]
)
def test_the_largest_record_fits(message_id: str, body: str) -> None:
    record = ActorRecord()
    for number in range(2 * REMEMBERED_COUNT):
        handled = Handled(message_id, largest(MAX_ANSWER_BYTES)) if number % 2 else Handled(message_id, None, "é" * 500)
        record = record.with_message(InboxMessage(message_id, body)).without_first("null", [handled])
    message = InboxMessage(message_id, body, True)
    while _has_room(record, message, PLAN):
        record = record.with_message(message)
    record = record.claimed(1 << 62).with_head(1, "é" * 500)
    record = record.with_message(message).without_first(largest(MAX_STATE_BYTES), [Handled(message_id)])
    assert len(record.encode()) <= MAX_RECORD_BYTES


def test_values_that_cannot_be_kept_are_refused() -> None:
    deep: list[object] = []
    for _ in range(10_000):
        deep = [deep]
    for value in (object(), float("nan"), {1, 2}, b"bytes", deep, "x" * 1000):
        with pytest.raises(holdfast.Misconfigured, match="the message"):
            encode_value(value, 100, "the message")


def test_a_state_that_cannot_be_kept_is_a_failure_of_the_handler() -> None:
    def handle(actor: holdfast.Actor, size: int) -> int:
        actor.state = "x" * size
        return size

    with holdfast.connect("memory://actor-sizes") as locks, locks.actors("texts", handle, tries=1) as texts:
        with pytest.raises(holdfast.MessageFailed, match="at most 262144 are kept"):
            texts.ask("a", MAX_STATE_BYTES, timeout=60)
        assert texts.ask("a", 5, timeout=60) == 5
        view = texts.look("a")
        assert view is not None
        assert view.state == "xxxxx"
