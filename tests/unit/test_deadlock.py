"""Who is stuck is told exactly: compared with trying out everything that could happen."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.deadlock import LOOSE, circle, describe, stuck, youngest
from holdfast.model import ClaimView, LockView
from tests.unit.effort import examples

Hold = tuple[str, int]
State = tuple[tuple[int, tuple[Hold, ...], tuple[Hold, ...]], ...]


def claim(actor: str, weight: int = 1, token: int | None = None, since: float = 0.0, mode: str = "lock") -> ClaimView:
    return ClaimView(f"{actor}@{since}", token, weight, "host", 1, since, 10.0, actor, mode)


@st.composite
def pictures(draw: st.DrawFn) -> list[LockView]:
    """A few lines as an engine might show them: nobody stands there who would fit."""
    actors, since, views = "pqrs", iter(range(100)), []
    for name in "abc"[: draw(st.integers(1, 3))]:
        capacity = draw(st.sampled_from([1, 1, 2, 3]))
        weights = st.integers(1, capacity)
        asking = [
            claim(draw(st.sampled_from(actors)), draw(weights), since=next(since))
            for _ in range(draw(st.integers(0, 5)))
        ]
        holders: list[ClaimView] = []
        while asking and sum(c.weight for c in holders) + asking[0].weight <= capacity:
            holders.append(replace(asking.pop(0), token=1))
        views.append(LockView(name, capacity, tuple(holders), tuple(asking)))
    waiting: set[str] = set()
    for view in views:  # an actor stands still while it waits: it waits once, with lock_all in several lines
        waiting |= {c.actor for c in view.waiters}
    return views


def let_in(state: State) -> State:
    lines = []
    for capacity, holders, waiters in state:
        while waiters and sum(weight for _, weight in holders) + waiters[0][1] <= capacity:
            holders, waiters = (*holders, waiters[0]), waiters[1:]
        lines.append((capacity, holders, waiters))
    return tuple(lines)


def never_let_in(views: list[LockView]) -> set[str]:
    """Try every order in which those who do not wait could let go of what they hold."""
    begin = let_in(
        tuple(
            (v.capacity, tuple((c.actor, c.weight) for c in v.holders), tuple((c.actor, c.weight) for c in v.waiters))
            for v in views
        )
    )
    never, seen, todo = {actor for _, _, waiters in begin for actor, _ in waiters}, {begin}, [begin]
    while todo:
        state = todo.pop()
        waiting = {actor for _, _, waiters in state for actor, _ in waiters}
        never &= waiting
        for number, (capacity, holders, waiters) in enumerate(state):
            for index, (actor, _) in enumerate(holders):
                if actor not in waiting:
                    line = (capacity, holders[:index] + holders[index + 1 :], waiters)
                    after = let_in((*state[:number], line, *state[number + 1 :]))
                    if after not in seen:
                        seen.add(after)
                        todo.append(after)
    return never


@examples(400)
@given(pictures())
def test_stuck_is_who_can_never_be_let_in(views: list[LockView]) -> None:
    assert stuck(views) == never_let_in(views)


@examples(400)
@given(pictures())
def test_a_circle_is_of_stuck_actors_who_await_each_other(views: list[LockView]) -> None:
    actors = circle(views)
    assert actors <= stuck(views)
    assert bool(actors) == bool(stuck(views))
    for actor in actors:
        behind = [
            waiter.actor
            for view in views
            for index, waiter in enumerate(view.waiters)
            if actor in {c.actor for c in (*view.holders, *view.waiters[:index])}
        ]
        assert actors & set(behind), f"nobody of {actors} waits for {actor}"


@examples(300)
@given(pictures())
def test_when_the_youngest_gives_way_again_and_again_everybody_ends(views: list[LockView]) -> None:
    for _ in range(10):
        actors = circle(views)
        if not actors:
            break
        victim = youngest(views, actors)
        if victim is None:  # nobody in the circle holds anything: a picture that cannot arise by itself
            return
        assert describe(views, actors)
        gone = victim.actor
        views = [
            replace(
                view,
                holders=tuple(c for c in view.holders if c.actor != gone),
                waiters=tuple(c for c in view.waiters if c.actor != gone),
            )
            for view in views
        ]
    assert stuck(views) == set()


def crossed(mode: str = "lock", mark: str = "") -> list[LockView]:
    """p holds a and waits for b; q holds b and waits for a."""
    return [
        LockView("a", 1, (claim(mark + "p", token=7, mode=mode),), (claim("q", since=2.0, mode=mode),)),
        LockView("b", 1, (claim(mark + "q", token=8, mode=mode),), (claim("p", since=1.0, mode=mode),)),
    ]


def test_the_youngest_is_who_closed_the_circle() -> None:
    views = crossed()
    assert circle(views) == {"p", "q"}
    victim = youngest(views, {"p", "q"})
    assert victim is not None
    assert victim.actor == "q"


def test_it_is_described_with_names_and_tokens() -> None:
    [one, other] = describe(crossed(), {"p", "q"})
    assert "(p) holds 'a' (token 7) and waits for 'b'" in one
    assert "(q) holds 'b' (token 8) and waits for 'a'" in other


def test_a_permit_that_may_be_handed_over_closes_no_circle() -> None:
    assert circle(crossed(mode="permit", mark=LOOSE)) == set()
    assert circle(crossed(mode="permit")) == {"p", "q"}


def test_a_loose_mutex_does_count_for_other_names() -> None:
    assert circle(crossed(mark=LOOSE)) == {"p", "q"}


def test_a_loose_mutex_does_not_count_for_its_own_name() -> None:
    """Acquired, and acquired again by the same actor: somebody else may release the first."""
    assert stuck([LockView("a", 1, (claim(LOOSE + "p", token=1),), (claim(LOOSE + "p", since=1.0),))]) == set()
    assert stuck([LockView("a", 1, (claim("p", token=1),), (claim("p", since=1.0),))]) == {"p"}
