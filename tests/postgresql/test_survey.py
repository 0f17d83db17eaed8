"""A survey tells no more than what is asked for: one very name, or the names that somebody waits for."""

from __future__ import annotations

import threading

import pytest

import holdfast
from holdfast.backends import open_engine
from holdfast.backends.queue_backend import Survey
from holdfast.ports import carrier


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+session"])
def test_only_what_is_asked_for(url: str, scheme: str) -> None:
    url = url.replace("postgresql:", f"{scheme}:")
    with holdfast.connect(url, namespace="n") as locks, holdfast.connect(url, namespace="n") as others:
        leases = [locks.lock(name).acquire() for name in ("door", "door/2", "room")]
        waiter = threading.Thread(target=lambda: others.lock("room").acquire().release())
        waiter.start()
        while not locks.survey("room")[0].waiters:
            pass
        wire = carrier(open_engine(url, "n", 5.0).wire())

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
