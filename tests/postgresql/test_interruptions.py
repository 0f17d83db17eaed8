"""An interruption (Ctrl-C) at any moment of an acquisition leaves the client of its coordinator as good as before."""

from __future__ import annotations

import threading
import time

import pytest

import holdfast
from tests.relational.house import of_sessions
from tests.support.interruptions import strikes

STEP = 3
MOMENTS_LIMIT = 3000


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("sessions", [False, True], ids=["table", "sessions"])
def test_the_next_one_finds_a_client_that_works(url: str, sessions: bool) -> None:
    url = of_sessions(url) if sessions else url
    with holdfast.connect(url, ttl=1.0, request_timeout=30.0) as locks:
        with locks.lock("warm"):
            pass

        def pair() -> None:
            with locks.lock(f"a{moment}", timeout=60):
                pass

        for moment in range(1, MOMENTS_LIMIT, STEP):
            struck = strikes(moment, pair, KeyboardInterrupt)
            other = threading.Thread(target=lambda: locks.lock("other", timeout=60).acquire().release(), daemon=True)
            other.start()
            other.join(20)  # less than the request timeout: nobody needs that to find out
            assert not other.is_alive(), f"the client hangs after moment {moment}"
            if not struck:
                break
        assert 50 < moment < MOMENTS_LIMIT - STEP
        end = time.monotonic() + 120
        while locks.survey():
            assert time.monotonic() < end, "what nobody has is held"
            time.sleep(0.1)
