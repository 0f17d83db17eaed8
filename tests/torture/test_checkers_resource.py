"""What is wrong in the resource is found: a commit behind a newer token, an acknowledged update that is not there."""

from __future__ import annotations

import pytest

from holdfast.torture.checkers import commits, updates
from holdfast.torture.history import Commit, Discipline
from tests.torture.history_builder import HistoryBuilder

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
    builder = HistoryBuilder("unfenced")
    builder.writes(0, 1, 1, 3, clients="abcd")
    builder.ends_with(4, 1, 3, 4)
    (violation,) = updates.check(builder.history()).violations
    assert violation.commits == (2, 3)
    assert "acknowledged to b (token 2), is not in the end" in violation.story
    assert "c (token 3) undid it with version 3, computed from version 1" in violation.story


def test_an_update_that_came_back_and_was_undone_again() -> None:
    builder = HistoryBuilder("unfenced")
    builder.writes(0, 1, 1, 2, 3)  # 3 undoes 2; 4 brings it back and undoes 3; 5 undoes 4 and 2, and brings 3 back
    builder.ends_with(5, 1, 3, 5)
    assert [violation.commits for violation in updates.check(builder.history()).violations] == [(2, 5), (4, 5)]


def test_two_acknowledged_writes_from_one_version_without_the_resource() -> None:
    builder = HistoryBuilder("unfenced")
    builder.writes(0, 1, 1, 3)
    (violation,) = updates.check(builder.history()).violations
    assert "both wrote from version 1" in violation.story


def test_nothing_lost() -> None:
    builder = HistoryBuilder()
    builder.writes(0, 1, 2)
    builder.ends_with(3, 1, 2, 3)
    finding = updates.check(builder.history())
    assert (finding.held, finding.judged) == (True, 3)


def test_a_write_that_was_never_acknowledged_is_no_loss() -> None:
    builder = HistoryBuilder()
    builder.commit(Commit(1, "write", "a", "c1", 0, 0, 1, 10, 0, 0), acknowledged=False)
    builder.commit(Commit(2, "write", "a", "c2", 0, 0, 2, 20, 1, 0))
    builder.ends_with(2, 2)
    assert updates.check(builder.history()).held is True


def test_a_counter_that_does_not_add_up_and_a_version_out_of_nowhere() -> None:
    builder = HistoryBuilder()
    builder.writes(0)
    builder.ends_with(1, 1, counter=2)
    builder.operation("c9", "write", 50, 51, parent=1, version=77)
    stories = [violation.story for violation in updates.check(builder.history()).violations]
    assert stories == [
        "version 77 of c9 is not in the resource's log",
        "the counter of 'a' says 2, and its set has 1 members",
    ]
