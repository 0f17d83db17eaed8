"""Each checker finds what was planted for it, says who it was, and lets the clean neighbour of that history pass."""

from __future__ import annotations

import pytest

from holdfast.model import SHARED_CAPACITY
from holdfast.torture.checkers import fifo, in_time, leftovers, linearizable, overlap, tokens
from holdfast.torture.checkers.finding import Finding
from holdfast.torture.checkers.holds import holds_of
from holdfast.torture.history import Fault, Left
from tests.torture.tale import Tale

ALL = SHARED_CAPACITY


def see_overlap(tale: Tale) -> Finding:
    return overlap.check(holds_of(tale.history().operations))


def see_order(tale: Tale) -> Finding:
    return linearizable.check(holds_of(tale.history().operations))


def see_tokens(tale: Tale) -> Finding:
    return tokens.check(holds_of(tale.history().operations))


def see_fifo(tale: Tale, *faults: Fault) -> Finding:
    return fifo.check(tale.history().operations, faults)


# definite holds


@pytest.mark.parametrize(("got", "overlaps"), [(4, True), (5, False), (6, False)])
def test_a_second_holder_before_release_was_invoked(got: int, overlaps: bool) -> None:
    tale = Tale()
    tale.grant("c1", asked=0, got=1, token=1, let_go=5, done=9)
    tale.grant("c2", asked=2, got=got, token=2, let_go=8, done=9)
    finding = see_overlap(tale)
    assert bool(finding.violations) == overlaps
    assert finding.judged == 2
    if overlaps:
        (violation,) = finding.violations
        assert "c2 (token 2) held 'a' together with c1 (token 1)" in violation.story
        verbs = [tale.history().operations[index].verb for index in violation.operations]
        assert sorted(verbs) == ["acquire", "acquire", "release", "release"]


def test_a_holder_that_was_told_of_its_loss_is_out() -> None:
    tale = Tale()
    tale.grant("c1", asked=0, got=1, token=1, lost=4, let_go=9, done=10, held=False)
    tale.grant("c2", asked=2, got=4, token=2, let_go=8, done=9)
    assert see_overlap(tale).held is True


def test_a_killed_holder_holds_as_long_as_it_gave_signs_of_life() -> None:
    tale = Tale()
    killed = tale.grant("c1", asked=0, got=1, token=1)
    tale.operation("c1", "write", 5, None, of=killed.seq)
    tale.grant("c2", asked=2, got=5, token=2, let_go=8, done=9)
    assert see_overlap(tale).held is True
    tale.grant("c3", asked=2, got=4, token=3, let_go=5, done=6)
    assert len(see_overlap(tale).violations) == 1


def test_what_nobody_knows_of_is_not_held() -> None:
    tale = Tale()
    tale.operation("c1", "acquire", 0, None)
    tale.operation("c2", "acquire", 0, 9, outcome="info")
    tale.operation("c3", "acquire", 0, 9, outcome="fail")
    assert see_overlap(tale).held is None


def test_other_names_are_other_locks() -> None:
    tale = Tale()
    tale.grant("c1", asked=0, got=1, token=1, let_go=5, done=9)
    tale.grant("c2", asked=0, got=1, token=1, let_go=5, done=9, name="b")
    assert see_overlap(tale).held is True


@pytest.mark.parametrize(
    ("capacity", "weights", "overlaps"),
    [
        *((3, (1, 1, 1), 0), (3, (1, 1, 1, 1), 1), (3, (2, 2), 1), (3, (3, 1, 1), 2)),
        *((ALL, (1, 1, 1), 0), (ALL, (ALL, 1), 1), (ALL, (1, ALL), 1), (ALL, (ALL, ALL), 1)),
    ],
)
def test_permits_readers_and_writers(capacity: int, weights: tuple[int, ...], overlaps: int) -> None:
    tale = Tale()
    for number, weight in enumerate(weights):
        got = 1 + number
        tale.grant(f"c{number}", asked=0, got=got, token=got, let_go=20, done=21, weight=weight, capacity=capacity)
    assert len(see_overlap(tale).violations) == overlaps
    assert bool(see_order(tale).violations) == bool(overlaps)  # all were clean


# linearizable


def test_a_lost_lease_may_have_ended_at_any_time() -> None:
    """The paused holder of every textbook: overlap says broken, the engine did nothing wrong."""
    tale = Tale()
    tale.grant("c1", asked=0, got=1, token=1, lost=9, let_go=10, done=11, held=False)
    tale.grant("c2", asked=2, got=4, token=2, let_go=6, done=7)
    assert see_overlap(tale).held is False
    assert see_order(tale).held is True


def test_two_clean_holds_at_once_have_no_order() -> None:
    tale = Tale()
    tale.grant("c1", asked=0, got=1, token=1, let_go=9, done=10)
    tale.grant("c2", asked=2, got=4, token=2, let_go=6, done=7)
    (violation,) = see_order(tale).violations
    assert violation.story.startswith("c2 (token 2) had 'a' granted, although c1 (token 1) held it")


def test_a_token_against_the_order_of_time_has_no_point() -> None:
    tale = Tale()
    tale.grant("c1", asked=0, got=1, token=2, let_go=2, done=3)
    tale.grant("c2", asked=4, got=5, token=1, let_go=6, done=7)
    assert "was given a smaller token" in see_order(tale).violations[0].story
    assert "was given a smaller token" in see_tokens(tale).violations[0].story


# tokens


def test_a_token_given_twice() -> None:
    tale = Tale()
    tale.grant("c1", asked=0, got=5, token=7)
    tale.grant("c2", asked=0, got=5, token=7)
    assert see_tokens(tale).violations[0].story == "c2 and c1 were both given token 7 of 'a'"


def test_tokens_of_grants_that_overlap_in_time_may_be_in_either_order() -> None:
    tale = Tale()
    tale.grant("c1", asked=0, got=5, token=8)
    tale.grant("c2", asked=5, got=6, token=7)
    assert see_tokens(tale).held is True


def test_a_token_is_above_all_that_were_known_not_only_the_first_or_the_last() -> None:
    for known in ((1, 9, 2), (9, 1, 2)):
        tale = Tale()
        for number, token in enumerate(known):
            tale.grant(f"c{number}", asked=0, got=1 + number, token=token)
        tale.grant("late", asked=10, got=11, token=5)
        (violation,) = see_tokens(tale).violations
        assert "late (token 5)" in violation.story
        assert "(token 9) had got it" in violation.story


def test_no_token_is_not_judged() -> None:
    tale = Tale()
    tale.grant("c1", asked=0, got=5)
    assert see_tokens(tale).held is None
    assert see_order(tale).held is None


# FIFO


def overtaking(*, until: int = 40, asked: int = 12, got: int = 30, fair: bool = True, comes_in: int = 20) -> Tale:
    """c1 holds; c2 is known to stand in line from 11; c3 asks after that, and is let in first."""
    tale = Tale()
    tale.grant("c1", asked=0, got=1, let_go=15, done=16)
    waiter = tale.grant("c2", asked=10, got=got, let_go=35, done=36)
    tale.queued(waiter, 11, until)
    tale.grant("c3", asked=asked, got=comes_in, let_go=25, done=26, fair=fair)
    return tale


def test_an_overtaking_claim() -> None:
    (violation,) = see_fifo(overtaking()).violations
    assert violation.story.startswith("c3 was let in to 'a' before c2")


@pytest.mark.parametrize(
    "tale",
    [
        pytest.param(overtaking(asked=11), id="it may have come first"),
        pytest.param(overtaking(until=20), id="the place may have been lost"),
        pytest.param(overtaking(got=20), id="the place may have been granted first"),
        pytest.param(overtaking(fair=False), id="it need not stand in line"),
    ],
)
def test_what_is_not_proven_is_no_overtaking(tale: Tale) -> None:
    finding = see_fifo(tale)
    assert not finding.violations
    assert finding.judged


def test_acknowledgements_that_show_one_place() -> None:
    tale = overtaking(until=14)
    waiter = next(o for o in tale.history().operations if o.verb == "acquire" and o.client == "c2")
    tale.queued(waiter, 13, 40)
    assert len(see_fifo(tale).violations) == 1


def test_an_acknowledgement_that_may_be_of_a_new_place() -> None:
    tale = overtaking(until=13)
    waiter = next(o for o in tale.history().operations if o.verb == "acquire" and o.client == "c2")
    tale.queued(waiter, 14, 40)
    assert not see_fifo(tale).violations


def test_an_engine_that_keeps_no_places_is_not_judged() -> None:
    assert see_fifo(overtaking(until=11)).held is None


def test_what_was_done_to_the_engine_may_cost_a_place() -> None:
    assert not see_fifo(overtaking(), Fault("kill", "engine", 13, 14)).violations
    assert not see_fifo(overtaking(), Fault("kill", "node:1", 5, 12)).violations
    assert see_fifo(overtaking(), Fault("pause", "client:c3", 13, 14)).violations
    assert see_fifo(overtaking(), Fault("kill", "engine", 5, 8)).violations
    assert see_fifo(overtaking(), Fault("netem", "engine", note="not run: no netem")).violations


def test_a_waiter_that_gave_up_may_have_been_let_in_and_out() -> None:
    tale = overtaking()
    waiter = next(o for o in tale.history().operations if o.verb == "acquire" and o.client == "c2")
    waiter.outcome = "fail"
    assert not see_fifo(tale).violations


def test_what_fits_together_may_come_back_in_any_order() -> None:
    tale = overtaking()
    for operation in tale.history().operations:
        operation.capacity = 2
    assert not see_fifo(tale).violations


def test_two_granted_at_once_are_not_taken_for_an_overtaking() -> None:
    tale = overtaking()
    for operation in tale.history().operations:
        if operation.verb == "acquire":
            operation.token = {"c1": 1, "c2": 2, "c3": 3}[operation.client]
    assert not see_fifo(tale).violations
    assert see_order(tale).violations


# after the end


def test_something_left_behind() -> None:
    tale = Tale()
    tale.grant("c1", asked=0, got=1, owner="o1", token=7)
    history = tale.history()
    assert leftovers.check(history).held is True
    history.left = [Left("a", "o1", 7), Left("a", "o2", state="waits")]
    assert [violation.story for violation in leftovers.check(history).violations] == [
        "after the end o1 of c1 still holds 'a' with token 7",
        "after the end o2 still waits for 'a'",
    ]


def test_a_run_that_was_not_surveyed_is_not_judged() -> None:
    history = Tale().history()
    history.ended = None
    assert leftovers.check(history).held is None


# answers by their timeout

SECOND = 10**9


@pytest.mark.parametrize(
    ("got", "struck", "late"), [(7, "", False), (11, "", True), (11, "node:n1", True), (11, "client:c1", False)]
)
def test_an_acquisition_without_an_answer_by_its_timeout(got: int, struck: str, late: bool) -> None:
    tale = Tale()
    tale.grant("c1", asked=0, got=got * SECOND, until=6 * SECOND)
    history = tale.history()
    if struck:
        history.faults.append(Fault("pause", struck, 1 * SECOND, 9 * SECOND))
    finding = in_time.check(history)
    assert finding.held is not late
    if late:
        (violation,) = finding.violations
        assert violation.story == "c1 waited 11.0 s for an answer about 'a', 5.0 s more than it may"


def test_one_that_was_cut_off_or_has_no_timeout_is_not_judged() -> None:
    tale = Tale()
    tale.operation("c1", "acquire", 0, None, until=SECOND)
    tale.grant("c1", asked=0, got=99 * SECOND)
    assert in_time.check(tale.history()).held is None
