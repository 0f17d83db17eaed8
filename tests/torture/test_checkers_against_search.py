"""Each checker agrees with its twin, which looks at everything, on small histories.

`fifo` is different: it must never call broken what a fair lock explains, and may let pass what it cannot prove.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.torture.checkers import fifo, linearizability, overlap, tokens, updates
from holdfast.torture.checkers.holds import DefiniteHold, holds_of
from holdfast.torture.history import Commit
from tests.torture import brute_force
from tests.torture.history_builder import HistoryBuilder

times = st.integers(0, 9)


@st.composite
def tales(draw: st.DrawFn, *, at_most: int = 5) -> dict[str, list[DefiniteHold]]:
    """Some grants of one name: any times, weights and tokens, some clean, some lost, some killed."""
    builder = HistoryBuilder()
    capacity = draw(st.sampled_from((1, 1, 2, 3)))
    for number in range(draw(st.integers(1, at_most))):
        asked, got, let_go, done = sorted(draw(st.lists(times, min_size=4, max_size=4)))
        how = draw(st.sampled_from(("clean", "clean", "refused", "lost", "killed")))
        builder.grant(
            f"c{number}",
            asked=asked,
            got=got,
            token=draw(st.integers(1, 6)),
            let_go=let_go if how in ("clean", "refused") else None,
            done=done,
            held=how == "clean",
            lost=let_go if how == "lost" else None,
            weight=draw(st.integers(1, capacity)),
            capacity=capacity,
        )
    return holds_of(builder.history().operations)


@given(tales())
def test_overlap(by_name: dict[str, list[DefiniteHold]]) -> None:
    assert (not overlap.check(by_name).violations) == brute_force.fits_at_all_times(by_name["a"])


@given(tales(at_most=4))
def test_linearizable(by_name: dict[str, list[DefiniteHold]]) -> None:
    assert (not linearizability.check(by_name).violations) == brute_force.some_order_explains(by_name["a"])


@given(tales())
def test_tokens(by_name: dict[str, list[DefiniteHold]]) -> None:
    assert (not tokens.check(by_name).violations) == brute_force.tokens_grow(by_name["a"])


@given(st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=8))
def test_updates(made: list[tuple[int, bool]]) -> None:
    """Any writes, each from any earlier version, some never acknowledged: exactly the lost ones are named."""
    builder = HistoryBuilder()
    commits = []
    for number, (back, acknowledged) in enumerate(made, 1):
        parent = max(0, number - 1 - back)
        commits.append(Commit(number, "write", "a", f"c{number}", 0, 0, number, 10 * number, number - 1, parent))
        builder.commit(commits[-1], acknowledged)
    there = brute_force.contents(commits)
    builder.ends_with(len(made), *there)
    lost = {number for number, (_, acknowledged) in enumerate(made, 1) if acknowledged and number not in there}
    history = builder.history()
    violations = updates.check(history).violations
    assert {violation.commits[0] for violation in violations} == lost
    for violation in violations:  # what undid it had it before, and not after
        number, culprit = violation.commits
        undone = commits[culprit - 1]
        assert number in brute_force.contents(commits[: undone.before])
        assert number not in brute_force.contents(commits[: undone.number])
    # Without the resource's word two acknowledged children of one version show the same.
    history.finals.clear()
    parents = [commit.parent for commit, (_, acknowledged) in zip(commits, made, strict=True) if acknowledged]
    assert len(updates.check(history).violations) == len(parents) - len(set(parents))


@st.composite
def queues(draw: st.DrawFn) -> tuple[HistoryBuilder, list[brute_force.Take]]:
    """Some grants of one name, some of them known to have stood in line."""
    builder, takes = HistoryBuilder(), []
    capacity = draw(st.sampled_from((1, 1, 2)))
    for number in range(draw(st.integers(2, 4))):
        asked, known, got, end = sorted(draw(st.lists(times, min_size=4, max_size=4)))
        weight, clean, in_line = draw(st.integers(1, capacity)), draw(st.booleans()), draw(st.booleans())
        until = draw(st.integers(known, 12))
        acquire = builder.grant(
            *(f"c{number}",), asked=asked, got=got, let_go=end, done=end, held=clean, weight=weight, capacity=capacity
        )
        if in_line:
            builder.queued(acquire, known, until)
        takes.append(brute_force.Take(acquire, known if in_line else None, until, end if clean else None))
    return builder, takes


@given(queues())
def test_fifo_raises_no_false_alarm(told: tuple[HistoryBuilder, list[brute_force.Take]]) -> None:
    builder, takes = told
    if fifo.check(builder.history().operations, []).violations:
        assert not brute_force.a_fair_lock_explains(takes)
