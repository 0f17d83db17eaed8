"""How long before the end of validity a holder is told, where the engine grants less than was asked for."""

from __future__ import annotations

import pytest

from holdfast._core.acquire import too_slow
from holdfast._core.lease import Hold
from holdfast.errors import BackendUnavailable
from holdfast.model import Claim, Grant, LockSpec, Promises
from holdfast.recipes.election import candidacy


def hold(spec: LockSpec, granted: float) -> Hold:
    return Hold(Claim(spec, "me", "actor"), Grant(1, 0.0, granted), 0.0)


def test_of_an_election_it_is_a_third_of_what_is_granted() -> None:
    spec = candidacy("boss", {"ttl": 120.0})
    assert hold(spec, 120.0).margin == 40.0
    short = hold(spec, 33.0)
    assert short.margin == pytest.approx(11.0)
    short.extend(10.0, 60.0, 10.0)
    assert short.margin == pytest.approx(20.0)


def test_what_was_asked_for_is_kept() -> None:
    """Somebody needs that long in order to stop."""
    spec = LockSpec("door", ttl=120.0, margin=20.0)
    assert hold(spec, 33.0).margin == 20.0


class Engine:
    scheme = "an engine"
    promises = Promises(frozenset())


def test_the_error_does_not_advise_a_longer_ttl_if_that_is_of_no_use() -> None:
    spec = LockSpec("door", ttl=120.0, margin=40.0)
    limited = too_slow(Engine(), spec, 33.0, 3)  # type: ignore[arg-type]
    assert isinstance(limited, BackendUnavailable)
    assert "'door' for 33 s only" in str(limited)
    assert "shorter margin" in str(limited)
    slow = too_slow(Engine(), spec, 120.0, 3)  # type: ignore[arg-type]
    assert isinstance(slow, BackendUnavailable)
    assert "longer ttl" in str(slow)


def test_a_grant_that_was_over_before_it_was_given_is_an_engine_in_trouble_and_no_mistake_of_the_user() -> None:
    """ZooKeeper takes off what its leader was silent for: a server that hangs is not a setting."""
    late = too_slow(Engine(), LockSpec("door", ttl=1.0), -0.161, 3)  # type: ignore[arg-type]
    assert isinstance(late, BackendUnavailable)
