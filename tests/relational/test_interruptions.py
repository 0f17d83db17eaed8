"""An interruption (Ctrl-C) at any moment of an acquisition leaves the client of its coordinator as good as before."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

import holdfast
from holdfast.backends.queue_backend import Release, Take
from holdfast.model import Claim, LockSpec
from holdfast.ports import untyped_wire
from tests.relational.house import House, of_sessions
from tests.support.interruptions import strikes

MOMENTS_LIMIT = 3000
TIMEOUT_S = 30.0
GONE_TIMEOUT_S = 120.0

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
both = pytest.mark.parametrize("sessions", [False, True], ids=["table", "sessions"])


def strike_each(work: Callable[[int], object], locks: holdfast.Coordinator, step: int) -> None:
    """Interrupt the work at one moment after the other, until it is over before; others get their lock each time."""
    for moment in range(1, MOMENTS_LIMIT, step):
        struck = strikes(moment, lambda: work(moment), KeyboardInterrupt)  # noqa: B023  called at once
        other = threading.Thread(target=lambda: locks.lock("other", timeout=60).acquire().release(), daemon=True)
        other.start()
        other.join(TIMEOUT_S * 2 / 3)  # less than the request timeout: nobody needs that to find out
        assert not other.is_alive(), f"the client hangs after moment {moment}"
        if not struck:
            break
    assert 50 < moment < MOMENTS_LIMIT - step


def until_none(left: Callable[[], object], what: str) -> None:
    end = time.monotonic() + GONE_TIMEOUT_S
    while found := left():
        assert time.monotonic() < end, f"{what}: {found}"
        time.sleep(0.1)


@both
def test_the_next_one_finds_a_client_that_works(url: str, sessions: bool) -> None:
    url = of_sessions(url) if sessions else url
    with holdfast.connect(url, ttl=1.0, request_timeout=TIMEOUT_S) as locks:
        with locks.lock("warm"):
            pass

        def pair(moment: int) -> None:
            with locks.lock(f"a{moment}", timeout=60):
                pass

        strike_each(pair, locks, 1)
        until_none(locks.survey, "what nobody has is held")


@both
def test_whoever_waited_leaves_nothing_behind(house: House, url: str, sessions: bool) -> None:
    database, url = url, of_sessions(url) if sessions else url
    threads = threading.active_count()
    with holdfast.connect(url) as rival, rival.lock("held"):
        with holdfast.connect(url, ttl=1.0, request_timeout=TIMEOUT_S) as locks:
            before = len(house.sessions(database))

            def wait(_: int) -> None:
                with suppress(holdfast.HoldfastError):  # in so short a time it may also be unknown
                    locks.lock("held", timeout=0.03).acquire()

            strike_each(wait, locks, 7)
            until_none(lambda: [view.waiters for view in rival.survey() if view.waiters], "nobody waits any more")
            # One that listens, or some that rest; the server looks every few seconds whether one that waits is there.
            until_none(lambda: len(house.sessions(database)) > before + 5, "sessions of nobody")
        until_none(lambda: len(house.sessions(database)) > 1, "sessions of a coordinator that is closed")
    until_none(lambda: threading.active_count() > threads, "threads of coordinators that are closed")


def test_a_session_that_lives_on_keeps_no_lock_that_was_released(house: House, session_url: str) -> None:
    """The interruption strikes when the server has granted the lock: the release that follows ends that, too."""
    with holdfast.connect(session_url, request_timeout=TIMEOUT_S) as locks:
        wire = untyped_wire(locks._wire)
        for moment in range(1, MOMENTS_LIMIT):
            claim = Claim(LockSpec(f"a{moment}", ttl=30.0), f"owner-{moment}", "actor")
            take = Take((claim,), True)
            struck = strikes(moment, lambda: wire.call(take, TIMEOUT_S), KeyboardInterrupt)  # noqa: B023  called at once
            wire.call(Release(claim, 0.0), TIMEOUT_S)
            # A session that was closed instead lives on at the server until it notices.
            until_none(locks.survey, f"moment {moment}: held by a session that lives on")
            if not struck:
                break
        assert 50 < moment < MOMENTS_LIMIT - 1
