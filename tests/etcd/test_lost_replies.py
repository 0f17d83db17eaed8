"""A take whose reply was lost is found again, in its place, whoever has come since."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast
from holdfast.backends import open_engine
from holdfast.errors import OutcomeUnknown
from holdfast.model import Claim, Grant, Queued
from holdfast.ports import AnyWire, untyped_wire
from holdfast.recipes import specs
from holdfast.sync.driver import run
from tests.etcd.cluster import Cluster


class Losing:
    """A wire that loses the reply to one request, counted from 0."""

    def __init__(self, wire: AnyWire, number: int) -> None:
        self._wire = untyped_wire(wire)
        self._left = number

    def call(self, request: Any, timeout: float) -> Any:
        reply = self._wire.call(request, timeout)
        self._left -= 1
        if self._left == -1:
            raise OutcomeUnknown("nobody heard it")
        return reply

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)


def claim(owner: str) -> Claim:
    return Claim(specs.mutex("door", {"ttl": 30.0}), owner, owner)


@pytest.mark.parametrize("later", range(4))
def test_who_came_later_does_not_hide_who_stands_before(state_cluster: Cluster, later: int) -> None:
    """The first request tries for a free line, the second one lines up. That one's reply is lost; then others come."""
    engine = open_engine(state_cluster.url, "holdfast", 5.0)
    wire = Losing(engine.wire(), 1)
    with holdfast.connect(state_cluster.url) as locks:
        holder = locks.lock("door").acquire()
        mine, others = claim("mine-1"), [claim(f"later{number}-1") for number in range(later)]
        with pytest.raises(OutcomeUnknown):
            run(engine.backend.take(mine, True), wire)
        for other in others:
            assert isinstance(run(engine.backend.take(other, True), wire), Queued)
        assert isinstance(run(engine.backend.take(mine, True), wire), Queued)
        assert holder.release()
        found = [run(engine.backend.take(each, True), wire) for each in (mine, *others)]
        assert [isinstance(each, Grant) for each in found] == [True, *[False] * later]
        for each in (mine, *others):
            run(engine.backend.release(each), wire)
    wire.close()
