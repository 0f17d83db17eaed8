"""Random requests for engines that keep lines: what a handful of clients might send, in any order.

A claim is an owner with one ask, as in life: a retry sends the same. Tokens are filled in by whoever sends a request:
-1 is the last one that was granted, -2 the one before. Times are multiples of 1/64 s, which are exact
as floats and as whole microseconds, so that two engines can be given the very same moments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from holdfast.backends.line import Allow, Evict, Release, Renew, Survey, Take
from holdfast.model import Ask, Claim

NAMES = ("a", "b", "a/b")
TICK = 15_625
"""1/64 s in microseconds."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request, and how much time passes before it. `door` says through which of several clients it comes."""

    request: Any
    ticks: int
    door: int
    back: bool
    """The calendar is set back by a day before it."""


@st.composite
def asks(draw: st.DrawFn, mixed: bool) -> Ask:
    """Mostly mutexes; where `mixed`, also semaphores, readers and writers on the same names."""
    capacity, weight = draw(st.sampled_from([(1, 1), (1, 1), (3, 1), (3, 2), (3, 3)] if mixed else [(1, 1)]))
    return Ask(
        draw(st.sampled_from(NAMES)),
        ttl=draw(st.sampled_from([0.5, 2.0, 16.0])),
        weight=weight,
        capacity=capacity,
        fair=draw(st.sampled_from([True, True, False])),
        lock_delay=draw(st.sampled_from([0.0, 0.0, 1.0])),
    )


@st.composite
def scripts(draw: st.DrawFn, mixed: bool, doors: int = 1, length: int = 25) -> list[Step]:
    """A sequence of requests by a few owners."""
    owners = range(draw(st.integers(2, 6)))
    claims = [Claim(draw(asks(mixed)), f"o{number}", f"actor{number % 3}") for number in owners]
    claim = st.sampled_from(claims)
    request = st.one_of(
        st.builds(Take, st.tuples(claim), st.just(True)),
        st.builds(Take, st.tuples(claim), st.just(True)),
        st.builds(Take, st.tuples(claim), st.just(False)),
        st.builds(Take, st.lists(claim, min_size=2, max_size=3, unique_by=lambda c: c.ask.name), st.booleans()),
        st.builds(Release, claim, st.just(0.0)),
        st.builds(Release, claim, st.just(0.0)),
        st.builds(Release, claim, st.sampled_from([0.0, 0.75])),
        st.builds(Renew, st.lists(claim, min_size=1, max_size=3, unique_by=lambda c: c.owner)),
        st.builds(Evict, st.sampled_from(NAMES), st.integers(-3, -1)),
        st.builds(Survey, st.sampled_from(["", "a", "b"]), st.booleans(), st.booleans()),
        st.builds(
            Allow,
            st.sampled_from(NAMES),
            st.sampled_from([0.5, 1.0]),
            st.integers(1, 3),
            st.just(1),
            st.sampled_from([0.0, 2.0]),
        ),
    )
    ticks = st.sampled_from([0, 0, 0, 1, 16, 32, 64, 200, 700, 2000])
    step = st.builds(Step, request, ticks, st.integers(0, doors - 1), st.sampled_from([False] * 19 + [True]))
    return draw(st.lists(step, max_size=length))
