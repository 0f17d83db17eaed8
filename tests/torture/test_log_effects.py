"""Torture of the event log: nothing is lost, doubled or skipped behind the fence; without it the run finds what is."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.log import Position, RecordedEvent
from holdfast.torture.effects.log_run import (
    LOG,
    append_violations,
    effect_violations,
    stream_violations,
    tail_violations,
)
from holdfast.torture.effects.run import torture_effects

each_kind = pytest.mark.parametrize("engine", ["sqlite", "redis"])
"""Effects in the transaction of the acknowledgement, and elsewhere."""


@each_kind
def test_nothing_is_lost_doubled_or_skipped(engine: str) -> None:
    result = torture_effects(LOG, engine, 6.0, seed=7)
    assert result.violations == []
    assert result.complaints == []
    assert result.told["appended"] > 0
    assert result.told["followed"] > 0
    assert result.passed


@each_kind
def test_without_the_fence_effects_are_doubled(engine: str) -> None:
    """Within a few runs: each stops some consumer between its poll and its acknowledgement. Longer ones are for a
    machine on which a worker needs seconds to start."""
    for seed, seconds in enumerate((6.0, 6.0, 12.0, 24.0, 48.0), 1):
        result = torture_effects(LOG, engine, seconds, seed, fenced=False)
        assert result.complaints == []
        if result.violations:
            assert any("was done 2 times" in line for line in result.violations)
            return
    raise AssertionError("no effect was doubled")


def _event(number: int, stream: str, version: int, name: str, whole: int = 1) -> RecordedEvent:
    return RecordedEvent(Position(number, 0), stream, version, name, "happened", whole)


EVENTS = [_event(1, "s1", 1, "w1-1-1/0"), _event(2, "s2", 1, "w2-1-1/0", 2), _event(3, "s2", 2, "w2-1-1/1", 2)]


def test_a_sound_log_has_no_violations() -> None:
    told: list[dict[str, Any]] = [
        {"what": "appended", "key": "s1", "result": [1, ["w1-1-1/0"]]},
        {"what": "appended", "key": "s2", "result": [2, ["w2-1-1/0", "w2-1-1/1"]]},
        {"what": "conflict", "key": "s2", "result": ["w3-1-1/0"]},
    ]
    assert stream_violations(EVENTS) == []
    assert append_violations(EVENTS, told) == []
    assert tail_violations(EVENTS, ["w1-1-1/0", "w2-1-1/0"], "w1") == []
    assert effect_violations(EVENTS, {0: [("w1-1-1/0", 5)], 1: [("w2-1-1/0", 3), ("w2-1-1/1", 4)]}) == []


def test_what_goes_wrong_with_streams_is_told() -> None:
    events = [*EVENTS[:2], _event(4, "s2", 3, "w2-1-1/0", 2)]
    assert stream_violations(events) == [
        "the versions of s2 are not 1 to 2: [1, 3]",
        "w2-1-1/0 is 2 times in s2",
    ]
    assert stream_violations(EVENTS[:2]) == ["of the append w2-1-1 to s2, 1 of 2 events are there"]


def test_what_goes_wrong_with_appends_is_told() -> None:
    told: list[dict[str, Any]] = [
        {"what": "appended", "key": "s1", "result": [2, ["w1-1-1/0"]]},
        {"what": "appended", "key": "s1", "result": [3, ["w1-1-2/0"]]},
        {"what": "conflict", "key": "s2", "result": ["w2-1-1/0"]},
        {"what": "torn", "key": "s2", "result": "some"},
    ]
    assert append_violations(EVENTS, told) == [
        "['w1-1-1/0'] were appended to s1 until version 2, and are at [1]",
        "['w1-1-2/0'] were appended to s1 until version 3, and are at [None]",
        "w2-1-1/0 was refused, and is in s2",
        "an append to s2 was there in part: some",
    ]


def test_a_skipped_event_is_told() -> None:
    assert tail_violations(EVENTS, ["w1-1-1/0", "w2-1-1/1"], "w1") == [
        "w1 was given ['w2-1-1/1'] as number 1 of the tail, and not ['w2-1-1/0']"
    ]


def test_what_goes_wrong_with_effects_is_told() -> None:
    effects = {0: [("w1-1-1/0", 5), ("w1-1-1/0", 4)], 1: [("w2-1-1/1", 4), ("w2-1-1/0", 4), ("w9-1-1/0", 4)]}
    assert effect_violations(EVENTS, effects) == [
        "the effect of w1-1-1/0 was done 2 times",
        "there is an effect of w9-1-1/0, which is not in the log",
        "the tokens of partition 0 went back",
        "the cursor of partition 1 went back",
    ]
    assert effect_violations(EVENTS, {0: [("w1-1-1/0", 5)], 1: [("w2-1-1/0", 4)]}) == [
        "the effect of w2-1-1/1 was lost"
    ]
