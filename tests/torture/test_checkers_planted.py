"""Each checker finds what was planted for it, says who it was, and lets the clean neighbour of that history pass."""

from __future__ import annotations

import pytest

from holdfast.model import SHARED_CAPACITY
from holdfast.torture.checkers import fifo, leftovers, linearizability, overlap, timeouts, tokens
from holdfast.torture.checkers.finding import Finding
from holdfast.torture.checkers.holds import holds_of
from holdfast.torture.history import FaultRecord, Leftover
from tests.torture.history_builder import HistoryBuilder

ALL = SHARED_CAPACITY


def see_overlap(builder: HistoryBuilder) -> Finding:
    return overlap.check(holds_of(builder.history().operations))


def see_order(builder: HistoryBuilder) -> Finding:
    return linearizability.check(holds_of(builder.history().operations))


def see_tokens(builder: HistoryBuilder) -> Finding:
    return tokens.check(holds_of(builder.history().operations))


def see_fifo(builder: HistoryBuilder, *faults: FaultRecord) -> Finding:
    return fifo.check(builder.history().operations, faults)


# definite holds


@pytest.mark.parametrize(("got", "overlaps"), [(4, True), (5, False), (6, False)])
def test_a_second_holder_before_release_was_invoked(got: int, overlaps: bool) -> None:
    builder = HistoryBuilder()
    builder.grant("c1", asked=0, got=1, token=1, let_go=5, done=9)
    builder.grant("c2", asked=2, got=got, token=2, let_go=8, done=9)
    finding = see_overlap(builder)
    assert bool(finding.violations) == overlaps
    assert finding.judged == 2
    if overlaps:
        (violation,) = finding.violations
        assert "c2 (token 2) held 'a' together with c1 (token 1)" in violation.story
        verbs = [builder.history().operations[index].verb for index in violation.operations]
        assert sorted(verbs) == ["acquire", "acquire", "release", "release"]


def test_a_holder_that_was_told_of_its_loss_is_out() -> None:
    builder = HistoryBuilder()
    builder.grant("c1", asked=0, got=1, token=1, lost=4, let_go=9, done=10, held=False)
    builder.grant("c2", asked=2, got=4, token=2, let_go=8, done=9)
    assert see_overlap(builder).held is True


def test_a_killed_holder_holds_as_long_as_it_gave_signs_of_life() -> None:
    builder = HistoryBuilder()
    killed = builder.grant("c1", asked=0, got=1, token=1)
    builder.operation("c1", "write", 5, None, of=killed.seq)
    builder.grant("c2", asked=2, got=5, token=2, let_go=8, done=9)
    assert see_overlap(builder).held is True
    builder.grant("c3", asked=2, got=4, token=3, let_go=5, done=6)
    assert len(see_overlap(builder).violations) == 1


def test_what_nobody_knows_of_is_not_held() -> None:
    builder = HistoryBuilder()
    builder.operation("c1", "acquire", 0, None)
    builder.operation("c2", "acquire", 0, 9, outcome="info")
    builder.operation("c3", "acquire", 0, 9, outcome="fail")
    assert see_overlap(builder).held is None


def test_other_names_are_other_locks() -> None:
    builder = HistoryBuilder()
    builder.grant("c1", asked=0, got=1, token=1, let_go=5, done=9)
    builder.grant("c2", asked=0, got=1, token=1, let_go=5, done=9, name="b")
    assert see_overlap(builder).held is True


@pytest.mark.parametrize(
    ("capacity", "weights", "overlaps"),
    [
        *((3, (1, 1, 1), 0), (3, (1, 1, 1, 1), 1), (3, (2, 2), 1), (3, (3, 1, 1), 2)),
        *((ALL, (1, 1, 1), 0), (ALL, (ALL, 1), 1), (ALL, (1, ALL), 1), (ALL, (ALL, ALL), 1)),
    ],
)
def test_permits_readers_and_writers(capacity: int, weights: tuple[int, ...], overlaps: int) -> None:
    builder = HistoryBuilder()
    for number, weight in enumerate(weights):
        got = 1 + number
        builder.grant(f"c{number}", asked=0, got=got, token=got, let_go=20, done=21, weight=weight, capacity=capacity)
    assert len(see_overlap(builder).violations) == overlaps
    assert bool(see_order(builder).violations) == bool(overlaps)  # all were clean


# linearizable


def test_a_lost_lease_may_have_ended_at_any_time() -> None:
    """The paused holder of every textbook: overlap says broken, the engine did nothing wrong."""
    builder = HistoryBuilder()
    builder.grant("c1", asked=0, got=1, token=1, lost=9, let_go=10, done=11, held=False)
    builder.grant("c2", asked=2, got=4, token=2, let_go=6, done=7)
    assert see_overlap(builder).held is False
    assert see_order(builder).held is True


def test_two_clean_holds_at_once_have_no_order() -> None:
    builder = HistoryBuilder()
    builder.grant("c1", asked=0, got=1, token=1, let_go=9, done=10)
    builder.grant("c2", asked=2, got=4, token=2, let_go=6, done=7)
    (violation,) = see_order(builder).violations
    assert violation.story.startswith("c2 (token 2) had 'a' granted, although c1 (token 1) held it")


def test_a_token_against_the_order_of_time_has_no_point() -> None:
    builder = HistoryBuilder()
    builder.grant("c1", asked=0, got=1, token=2, let_go=2, done=3)
    builder.grant("c2", asked=4, got=5, token=1, let_go=6, done=7)
    assert "was given a smaller token" in see_order(builder).violations[0].story
    assert "was given a smaller token" in see_tokens(builder).violations[0].story


# tokens


def test_a_token_given_twice() -> None:
    builder = HistoryBuilder()
    builder.grant("c1", asked=0, got=5, token=7)
    builder.grant("c2", asked=0, got=5, token=7)
    assert see_tokens(builder).violations[0].story == "c2 and c1 were both given token 7 of 'a'"


def test_tokens_of_grants_that_overlap_in_time_may_be_in_either_order() -> None:
    builder = HistoryBuilder()
    builder.grant("c1", asked=0, got=5, token=8)
    builder.grant("c2", asked=5, got=6, token=7)
    assert see_tokens(builder).held is True


def test_a_token_is_above_all_that_were_known_not_only_the_first_or_the_last() -> None:
    for known in ((1, 9, 2), (9, 1, 2)):
        builder = HistoryBuilder()
        for number, token in enumerate(known):
            builder.grant(f"c{number}", asked=0, got=1 + number, token=token)
        builder.grant("late", asked=10, got=11, token=5)
        (violation,) = see_tokens(builder).violations
        assert "late (token 5)" in violation.story
        assert "(token 9) had got it" in violation.story


def test_no_token_is_not_judged() -> None:
    builder = HistoryBuilder()
    builder.grant("c1", asked=0, got=5)
    assert see_tokens(builder).held is None
    assert see_order(builder).held is None


# FIFO


def overtaking(
    *, until: int = 40, asked: int = 12, got: int = 30, fair: bool = True, comes_in: int = 20
) -> HistoryBuilder:
    """c1 holds; c2 is known to stand in line from 11; c3 asks after that, and is let in first."""
    builder = HistoryBuilder()
    builder.grant("c1", asked=0, got=1, let_go=15, done=16)
    waiter = builder.grant("c2", asked=10, got=got, let_go=35, done=36)
    builder.queued(waiter, 11, until)
    builder.grant("c3", asked=asked, got=comes_in, let_go=25, done=26, fair=fair)
    return builder


def test_an_overtaking_claim() -> None:
    (violation,) = see_fifo(overtaking()).violations
    assert violation.story.startswith("c3 was let in to 'a' before c2")


@pytest.mark.parametrize(
    "builder",
    [
        pytest.param(overtaking(asked=11), id="it may have come first"),
        pytest.param(overtaking(until=20), id="the place may have been lost"),
        pytest.param(overtaking(got=20), id="the place may have been granted first"),
        pytest.param(overtaking(fair=False), id="it need not stand in line"),
    ],
)
def test_what_is_not_proven_is_no_overtaking(builder: HistoryBuilder) -> None:
    finding = see_fifo(builder)
    assert not finding.violations
    assert finding.judged


def test_acknowledgements_that_show_one_place() -> None:
    builder = overtaking(until=14)
    waiter = next(o for o in builder.history().operations if o.verb == "acquire" and o.client == "c2")
    builder.queued(waiter, 13, 40)
    assert len(see_fifo(builder).violations) == 1


def test_an_acknowledgement_that_may_be_of_a_new_place() -> None:
    builder = overtaking(until=13)
    waiter = next(o for o in builder.history().operations if o.verb == "acquire" and o.client == "c2")
    builder.queued(waiter, 14, 40)
    assert not see_fifo(builder).violations


def test_an_engine_that_keeps_no_places_is_not_judged() -> None:
    assert see_fifo(overtaking(until=11)).held is None


def test_what_was_done_to_the_engine_may_cost_a_place() -> None:
    assert not see_fifo(overtaking(), FaultRecord("kill", "engine", 13, 14)).violations
    assert not see_fifo(overtaking(), FaultRecord("kill", "node:1", 5, 12)).violations
    assert see_fifo(overtaking(), FaultRecord("pause", "client:c3", 13, 14)).violations
    assert see_fifo(overtaking(), FaultRecord("kill", "engine", 5, 8)).violations
    assert see_fifo(overtaking(), FaultRecord("netem", "engine", note="not run: no netem")).violations


def test_a_waiter_that_gave_up_may_have_been_let_in_and_out() -> None:
    builder = overtaking()
    waiter = next(o for o in builder.history().operations if o.verb == "acquire" and o.client == "c2")
    waiter.outcome = "fail"
    assert not see_fifo(builder).violations


def test_what_fits_together_may_come_back_in_any_order() -> None:
    builder = overtaking()
    for operation in builder.history().operations:
        operation.capacity = 2
    assert not see_fifo(builder).violations


def test_two_granted_at_once_are_not_taken_for_an_overtaking() -> None:
    builder = overtaking()
    for operation in builder.history().operations:
        if operation.verb == "acquire":
            operation.token = {"c1": 1, "c2": 2, "c3": 3}[operation.client]
    assert not see_fifo(builder).violations
    assert see_order(builder).violations


# after the end


def test_something_left_behind() -> None:
    builder = HistoryBuilder()
    builder.grant("c1", asked=0, got=1, owner="o1", token=7)
    history = builder.history()
    assert leftovers.check(history).held is True
    history.left = [Leftover("a", "o1", 7), Leftover("a", "o2", state="waits")]
    assert [violation.story for violation in leftovers.check(history).violations] == [
        "after the end o1 of c1 still holds 'a' with token 7",
        "after the end o2 still waits for 'a'",
    ]


def test_a_run_that_was_not_surveyed_is_not_judged() -> None:
    history = HistoryBuilder().history()
    history.ended = None
    assert leftovers.check(history).held is None


# answers by their timeout

SECOND = 10**9


@pytest.mark.parametrize(
    ("got", "target", "late"), [(7, "", False), (11, "", True), (11, "node:n1", True), (11, "client:c1", False)]
)
def test_an_acquisition_without_an_answer_by_its_timeout(got: int, target: str, late: bool) -> None:
    builder = HistoryBuilder()
    builder.grant("c1", asked=0, got=got * SECOND, until=6 * SECOND)
    history = builder.history()
    if target:
        history.faults.append(FaultRecord("pause", target, 1 * SECOND, 9 * SECOND))
    finding = timeouts.check(history)
    assert finding.held is not late
    if late:
        (violation,) = finding.violations
        assert violation.story == "c1 waited 11.0 s for an answer about 'a', 5.0 s more than it may"


def test_one_that_was_cut_off_or_has_no_timeout_is_not_judged() -> None:
    builder = HistoryBuilder()
    builder.operation("c1", "acquire", 0, None, until=SECOND)
    builder.grant("c1", asked=0, got=99 * SECOND)
    assert timeouts.check(builder.history()).held is None
