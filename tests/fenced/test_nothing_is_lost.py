"""Claim before read loses nothing: every acknowledged update is there, whoever is paused or killed where."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from tests.fenced.crowd import crowd
from tests.fenced.ledgers import balance, create
from tests.fenced.paused import Actor, play

OURS = ["ClaimedFile", "ClaimedRow"]
# Every order in which two processes can reach their reads, the point after their checks, and their ends.
ORDERS = sorted(set(permutations("AAABBB")))


def schedule(order: tuple[str, ...]) -> str:
    stops = {name: iter(("read", "checked", "end")) for name in "AB"}
    return " ".join(f"{name}>{next(stops[name])}" for name in order)


@pytest.mark.parametrize("kind", OURS)
def test_no_order_of_pauses_loses_an_update(kind: str, pair: tuple[Actor, Actor], tmp_path: Path) -> None:
    ends = set()
    for number, order in enumerate(ORDERS):
        played = play(kind, schedule(order), pair, tmp_path / f"ledger{number}")
        assert played.lost == 0, (schedule(order), played)
        assert "acked" in (played.a, played.b)
        ends |= {played.a, played.b}
    assert ends == {"acked", "refused", "busy"}


@pytest.mark.parametrize("kind", OURS)
def test_a_holder_paused_after_its_read_is_refused(kind: str, pair: tuple[Actor, Actor], tmp_path: Path) -> None:
    played = play(kind, "A>read B>end A>end", pair, tmp_path / "ledger")
    assert (played.a, played.b, played.balance) == ("refused", "acked", 1)


@pytest.mark.parametrize("kind", OURS)
def test_while_a_holder_is_paused_inside_its_write_nobody_can_claim(
    kind: str, pair: tuple[Actor, Actor], tmp_path: Path
) -> None:
    played = play(kind, "A>checked B>end", pair, tmp_path / "ledger")
    assert (played.a, played.b, played.balance) == ("acked", "busy", 1)


@pytest.mark.parametrize("kind", OURS)
def test_a_holder_killed_inside_its_write_is_out_of_the_way_at_once(
    kind: str, pair: tuple[Actor, Actor], tmp_path: Path
) -> None:
    killed, other = pair
    path = tmp_path / "ledger"
    create(kind, str(path))
    for token, updates in ((1, 1), (2, 2)):
        other.begin(kind, token, path)
        other.go("end")
        assert balance(kind, str(path)) == updates
    killed.begin(kind, 3, path)
    killed.go("checked")
    killed.kill()
    assert balance(kind, str(path)) == 2
    other.begin(kind, 4, path)
    other.go("end")
    assert (other.ended, balance(kind, str(path))) == ("acked", 3)
    assert not list(tmp_path.glob("*.new")), "what the killed writer left behind was not taken away"


@pytest.mark.parametrize("kind", OURS)
def test_a_crowd_without_any_lock_loses_nothing(kind: str, tmp_path: Path) -> None:
    """A fence does not lean on the lock: with everybody in at once, some are refused, and no update is lost."""
    path = str(tmp_path / "ledger")
    create(kind, path)
    acked = crowd(kind, path, times=150)
    assert sum(acked) == balance(kind, path) > 0
