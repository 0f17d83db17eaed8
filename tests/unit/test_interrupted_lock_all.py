"""An interruption (Ctrl-C) at any moment of a `lock_all` leaves nothing behind that is renewed for ever."""

from __future__ import annotations

import gc

import pytest

import holdfast
from tests.support.interruptions import strikes

MOMENTS_LIMIT = 2000
NAMES = ["a", "b"]


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_nobody_is_left_with_a_hold() -> None:
    """Of each hold that is left somebody has the lease, or had it: then it ends with its ttl."""
    with holdfast.connect("memory://interrupted-lock-all", ttl=30) as locks:

        def pair() -> None:
            with locks.lock_all([f"{name}{moment}" for name in NAMES]):
                pass

        for moment in range(1, MOMENTS_LIMIT):
            if not strikes(moment, pair):
                break
            assert not [hold for hold in locks._core.holds if hold.alive and hold.lease is None], moment
        assert 50 < moment < MOMENTS_LIMIT - 1


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_lease_whose_release_was_interrupted_is_dropped_at_once() -> None:
    """Not with the next garbage collection: until then it would be renewed."""
    gc.disable()
    try:
        with holdfast.connect("memory://interrupted-release", ttl=30) as locks:

            def pair() -> None:
                with locks.lock(f"a{moment}"):
                    pass

            for moment in range(1, MOMENTS_LIMIT):
                if not strikes(moment, pair):
                    break
                alive = [hold for hold in locks._core.holds if hold.alive and not hold.forgotten]
                assert all(hold.abandoned for hold in alive), moment
            assert 30 < moment < MOMENTS_LIMIT - 1
    finally:
        gc.enable()
