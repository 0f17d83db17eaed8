"""The server dies and restarts, sessions end, the process forks: no lock is left or forged."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

import holdfast
from holdfast.errors import BackendUnavailable
from tests.relational.conftest import HOUSES
from tests.relational.house import House

LONG = 600
"""A ttl that outlasts every restart, in seconds."""


@pytest.fixture(params=HOUSES)
def mortal(request: pytest.FixtureRequest) -> Iterator[House]:
    """A server of the test's own, which flushes what it commits."""
    with HOUSES[request.param](durable=True) as house:
        yield house


def test_a_lease_survives_a_killed_and_restarted_server(mortal: House) -> None:
    url = mortal.new_url()
    with holdfast.connect(url, ttl=LONG, require={"durable", "linearizable"}) as locks:
        lease = locks.lock("door").acquire()
        mortal.stop(signal.SIGKILL)
        with pytest.raises(BackendUnavailable):
            lease.renew()
        mortal.start()
        lease.renew()
        with holdfast.connect(url) as others:
            assert others.lock("door").try_acquire() is None
            assert lease.release()
            newer = others.lock("door").acquire()
        assert newer.token > lease.token


def test_terminated_sessions_are_dialled_again(house: House, url: str) -> None:
    with holdfast.connect(url) as locks, holdfast.connect(url) as others:
        lease = locks.lock("door", ttl=LONG).acquire()
        taken = threading.Event()

        def wait() -> None:
            with others.lock("door"):
                taken.set()

        waiter = threading.Thread(target=wait)
        waiter.start()
        while not locks.survey("door")[0].waiters:
            pass
        for session in house.sessions(url):  # the waiter's ears too
            house.end_session(session)
        assert lease.release()
        waiter.join(LONG)
        assert taken.is_set()


def test_a_child_holds_nothing_and_leaves_the_parents_session_alone(url: str) -> None:
    with holdfast.connect(url) as locks:
        lease = locks.lock("door").acquire()
        child = os.fork()
        if child == 0:
            try:
                ok = lease.reason == "forked" and locks.lock("door").try_acquire() is None
                with locks.lock("window"):
                    pass
                os._exit(0 if ok else 1)
            except BaseException:  # noqa: BLE001  a child must not go on into pytest
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        lease.renew()
        assert lease.release()
