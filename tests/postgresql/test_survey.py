"""A survey tells no more than what is asked for: one very name, or the names that somebody waits for."""

from __future__ import annotations

import threading

import pytest

import holdfast
from holdfast.backends import open_engine
from holdfast.backends.queue_backend import Survey
from holdfast.ports import untyped_wire


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+session"])
def test_only_what_is_asked_for(url: str, scheme: str) -> None:
    url = url.replace("postgresql:", f"{scheme}:")
    with holdfast.connect(url, namespace="n") as locks, holdfast.connect(url, namespace="n") as others:
        leases = [locks.lock(name).acquire() for name in ("door", "door/2", "room")]
        waiter = threading.Thread(target=lambda: others.lock("room").acquire().release())
        waiter.start()
        while not locks.survey("room")[0].waiters:
            pass
        wire = untyped_wire(open_engine(url, "n", 5.0).wire())

        def names(request: Survey) -> list[str]:
            views = wire.call(request, 5.0)
            assert isinstance(views, list)
            return [view.name for view in views]

        assert names(Survey("door")) == ["door", "door/2"]
        assert names(Survey("door", exact=True)) == ["door"]
        assert names(Survey("doo", exact=True)) == []
        assert names(Survey("", contended=True)) == ["room"]
        assert names(Survey("door", contended=True)) == []
        wire.close()
        assert all(lease.release() for lease in leases)
        waiter.join(120)


def test_a_waiter_is_seen_through_a_session_that_is_younger_than_its_wait(url: str) -> None:
    """Its first session ended, and it has shown itself again: whoever looks at the session's age must not miss it."""
    import psycopg

    with holdfast.connect(url):
        pass  # makes the tables
    queue = "SELECT holdfast_session_queue('n/door', 'waiter', 'who')"
    look = "SELECT since, holdfast_session_lives(backend, since) FROM holdfast_session_waiter"
    with psycopg.connect(url, autocommit=True) as first:
        first.execute(queue)
        [since, lives] = first.execute(look).fetchone() or []
        assert lives
        first.execute(queue)
        assert first.execute(look).fetchone() == (since, True), "through the same session it waits since then"
        with psycopg.connect(url, autocommit=True) as second:
            second.execute(queue)
            assert (second.execute(look).fetchone() or [])[1]
