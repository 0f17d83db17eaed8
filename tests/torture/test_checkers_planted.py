"""Each checker finds what was planted for it, says who it was, and lets the clean neighbour of that history pass."""

from __future__ import annotations

import pytest

from holdfast.model import SHARED_CAPACITY
from holdfast.torture.checkers import commits, fifo, judge, leftovers, linearizable, overlap, tokens, updates
from holdfast.torture.checkers.finding import Finding
from holdfast.torture.checkers.holds import holds_of
from holdfast.torture.history import DISCIPLINES, Commit, Discipline, Fault, Left
from holdfast.torture.synthetic import BUGS, Bug, Plan, make_up
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


def test_no_token_is_not_judged() -> None:
    tale = Tale()
    tale.grant("c1", asked=0, got=5)
    assert see_tokens(tale).held is None
    assert see_order(tale).held is None


# the resource's own log


def log(*rows: tuple[str, int], name: str = "a") -> list[Commit]:
    return [
        Commit(number, "claim" if verb == "claim" else "write", name, f"c{token}", 1, number, token, number)
        for number, (verb, token) in enumerate(rows, 1)
    ]


@pytest.mark.parametrize(
    ("discipline", "rows", "broken"),
    [
        ("claim-before-read", [("claim", 1), ("write", 1), ("claim", 2), ("claim", 2), ("write", 2)], 0),
        ("claim-before-read", [("claim", 1), ("claim", 2), ("write", 1), ("write", 2)], 1),
        ("claim-before-read", [("claim", 2), ("claim", 1)], 1),
        ("claim-before-read", [("claim", 1), ("write", 2)], 1),
        ("claim-before-read", [("write", 1)], 1),
        ("check-on-write", [("write", 1), ("write", 3), ("write", 3)], 0),
        ("check-on-write", [("write", 3), ("write", 1)], 1),
        ("unfenced", [("write", 3), ("write", 1)], 0),
    ],
)
def test_commits_behind_a_newer_token(discipline: Discipline, rows: list[tuple[str, int]], broken: int) -> None:
    assert len(commits.check(log(*rows), discipline, []).violations) == broken


def test_unfenced_writes_that_went_back_are_counted() -> None:
    assert commits.stale_writes(log(("write", 1), ("write", 3), ("write", 2), ("write", 3))) == 1


def test_marks_are_of_a_name() -> None:
    assert not commits.check(log(("claim", 5)) + log(("claim", 1), name="b"), "claim-before-read", []).violations


# lost updates


def test_an_update_that_was_undone_and_who_did_it() -> None:
    tale = Tale("unfenced")
    tale.writes(0, 1, 1, 3, clients="abcd")
    tale.ends_with(4, 1, 3, 4)
    (violation,) = updates.check(tale.history()).violations
    assert violation.commits == (2, 3)
    assert "acknowledged to b (token 2), is not in the end" in violation.story
    assert "c (token 3) undid it with version 3, computed from version 1" in violation.story


def test_two_acknowledged_writes_from_one_version_without_the_resource() -> None:
    tale = Tale("unfenced")
    tale.writes(0, 1, 1, 3)
    (violation,) = updates.check(tale.history()).violations
    assert "both wrote from version 1" in violation.story


def test_nothing_lost() -> None:
    tale = Tale()
    tale.writes(0, 1, 2)
    tale.ends_with(3, 1, 2, 3)
    finding = updates.check(tale.history())
    assert (finding.held, finding.judged) == (True, 3)


def test_a_write_that_was_never_acknowledged_is_no_loss() -> None:
    tale = Tale()
    tale.commit(Commit(1, "write", "a", "c1", 0, 0, 1, 10, 0, 0), acknowledged=False)
    tale.commit(Commit(2, "write", "a", "c2", 0, 0, 2, 20, 1, 0))
    tale.ends_with(2, 2)
    assert updates.check(tale.history()).held is True


def test_a_counter_that_does_not_add_up_and_a_version_out_of_nowhere() -> None:
    tale = Tale()
    tale.writes(0)
    tale.ends_with(1, 1, counter=2)
    tale.operation("c9", "write", 50, 51, parent=1, version=77)
    stories = [violation.story for violation in updates.check(tale.history()).violations]
    assert stories == [
        "version 77 of c9 is not in the resource's log",
        "the counter of 'a' says 2, and its set has 1 members",
    ]


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


# whole runs, made up

CATCHES: dict[Bug, set[str]] = {
    "double-grant": {"overlap", "linearizable"},
    "same-token": {"tokens", "linearizable"},
    "token-back": {"tokens", "linearizable"},
    "overtake": {"fifo"},
    "open-fence": {"commits", "updates"},
    "left-behind": {"leftovers"},
}


def test_every_bug_has_its_checkers() -> None:
    assert set(CATCHES) == set(BUGS)


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug: Bug) -> None:
    judgement = judge(make_up(Plan(holds=600, bug=bug, pauses=0.1 if bug == "open-fence" else 0.0)))
    found = {checker for checker, finding in judgement.findings.items() if finding.violations}
    assert found - {"overlap"} == CATCHES[bug] - {"overlap"}
    assert not judgement.passed


@pytest.mark.parametrize("capacity", [1, 3])
@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("seed", range(5))
def test_a_correct_engine_is_never_accused(seed: int, discipline: Discipline, capacity: int) -> None:
    judgement = judge(make_up(Plan(seed, holds=300, discipline=discipline, capacity=capacity, pauses=0.05)))
    found = {checker for checker, finding in judgement.findings.items() if finding.violations}
    assert found <= ({"overlap"} if discipline == "claim-before-read" else {"overlap", "updates"})
    assert judgement.passed
    assert all(line.held is not None for line in judgement.lines)


def test_without_pauses_nothing_overlaps() -> None:
    judgement = judge(make_up(Plan(holds=300, pauses=0.0)))
    assert [line.held for line in judgement.lines] == [True] * 6
