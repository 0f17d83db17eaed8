"""The limiter's one number does what a bucket of tokens does, and bookings are kept in order."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from holdfast._core import gcra
from tests.unit.effort import examples

intervals, bursts = st.integers(1, 1000), st.integers(1, 10)
visits = st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 10)), max_size=40)


@examples(400)
@given(intervals, bursts, visits)
def test_it_is_a_bucket_that_fills_at_the_rate(interval: int, burst: int, script: list[tuple[int, int]]) -> None:
    now, tat, filled, last = 10**6, 0, Fraction(burst), 10**6
    for pause, wanted in script:
        cost = min(wanted, burst)
        now += pause
        filled = min(Fraction(burst), filled + Fraction(now - last, interval))
        last = now
        allowed, wait, tat = gcra.allow(tat, now, interval, burst, cost, 0)
        assert allowed == (filled >= cost)
        if allowed:
            filled -= cost
            assert wait == 0
        else:
            assert now + wait == now + -(-(cost - filled) * interval // 1)


@examples(300)
@given(intervals, bursts, visits)
def test_bookings_are_in_order_and_no_more_pass_than_may(
    interval: int, burst: int, script: list[tuple[int, int]]
) -> None:
    now, tat, moments = 10**6, 0, list[tuple[int, int]]()
    for pause, wanted in script:
        cost = min(wanted, burst)
        now += pause
        allowed, wait, tat = gcra.allow(tat, now, interval, burst, cost, 10**12)
        assert allowed
        assert not moments or now + wait >= moments[-1][0]
        moments.append((now + wait, cost))
    for index, (moment, _) in enumerate(moments):  # in any window from one booking to a later one
        for end in range(index, len(moments)):
            passed = sum(cost for _, cost in moments[index : end + 1])
            assert passed <= burst + (moments[end][0] - moment) // interval


@examples(200)
@given(intervals, bursts, visits, st.integers(0, 2000))
def test_a_refusal_spends_nothing(interval: int, burst: int, script: list[tuple[int, int]], reserve: int) -> None:
    now, tat = 10**6, 0
    for pause, wanted in script:
        now += pause
        allowed, wait, after = gcra.allow(tat, now, interval, burst, min(wanted, burst), reserve)
        assert allowed == (wait <= reserve)
        if not allowed:
            assert after == max(tat, now)
        tat = after
