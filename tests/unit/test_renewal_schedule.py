"""The calendar forgets nobody and comes late for nobody: compared with a list that is sorted each time."""

from __future__ import annotations

from contextlib import nullcontext

from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.lease import NEVER, Hold
from holdfast._core.renewal_schedule import RenewalSchedule
from holdfast.model import Claim, Grant, LockSpec
from tests.unit.effort import examples


def hold(ttl: float, now: float) -> Hold:
    return Hold(Claim(LockSpec("a", ttl=ttl), "o", "actor"), Grant(1, now, ttl), now)


moves = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "move", "discard", "wait"]),
        st.floats(0.01, 100.0),
        st.integers(0, 100),
    ),
    max_size=60,
)


@examples(300)
@given(moves)
def test_everybody_comes_out_in_time_and_nobody_twice(script: list[tuple[str, float, int]]) -> None:
    now, calendar, inside = 1000.0, RenewalSchedule(nullcontext()), list[Hold]()
    for kind, seconds, which in script:
        if kind == "put":
            inside.append(hold(seconds, now))
            calendar.put(inside[-1])
        elif kind == "move" and inside:
            one = inside[which % len(inside)]
            one.renew_at = now + seconds / 3
            calendar.put(one)
        elif kind == "discard" and inside:
            calendar.discard(inside.pop(which % len(inside)))
        elif kind == "wait":
            now += seconds / 10
            due = calendar.pop_due(now)
            assert len(set(due)) == len(due)
            late = [one for one in inside if min(one.renew_at, one.deadline) <= now]
            assert set(late) <= set(due) <= set(inside)
            inside = [one for one in inside if one not in due]
            left = [min(one.renew_at, one.deadline) for one in inside]
            assert now < calendar.waking_at <= min(left, default=NEVER)


@examples(200)
@given(st.lists(st.floats(0.01, 1000.0), min_size=1, max_size=30))
def test_it_wakes_early_but_not_often(ttls: list[float]) -> None:
    """A slot is early by a sixteenth of the time ahead at most, so few wake-ups lead to the moment itself."""
    for ttl in ttls:
        now, calendar, looks, one = 1000.0, RenewalSchedule(nullcontext()), 0, hold(ttl, 1000.0)
        moment = min(one.renew_at, one.deadline)
        calendar.put(one)
        while now < moment:
            if calendar.pop_due(now):
                calendar.put(one)
            now, looks = max(now, calendar.waking_at), looks + 1
            assert looks < 30
        assert calendar.pop_due(now) == [one]
        assert now == moment


def test_who_comes_earlier_than_the_next_waking_rings() -> None:
    calendar = RenewalSchedule(nullcontext())
    calendar.pop_due(1000.0)
    assert calendar.put(hold(100.0, 1000.0))
    assert not calendar.put(hold(200.0, 1000.0))
    assert calendar.put(hold(1.0, 1000.0))


def test_thousands_of_one_ttl_share_few_slots() -> None:
    calendar = RenewalSchedule(nullcontext())
    calendar.pop_due(1000.0)
    for number in range(5000):
        calendar.put(hold(30.0, 1000.0 + number / 1000))
    assert len(calendar) == 5000
    batches, now = 0, 1000.0
    while len(calendar):
        now = calendar.waking_at
        batches += bool(calendar.pop_due(now))
    assert batches < 500
