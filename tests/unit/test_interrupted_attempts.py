"""An attempt that many wait for, and whose maker was interrupted before it began: the next one begins it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast._core.flow import NEW_EVENT, NOW, Flow, Spawn
from holdfast.backends.connections.single_flight import SingleFlight
from holdfast.backends.mysql.error_mapping import ERRORS
from holdfast.backends.relational.dialer import Dialer

Wait = Callable[[float], Flow[object]]


class Made:
    def close(self) -> None: ...


def attempt(deadline: float) -> Flow[Made]:
    yield NOW
    return Made()


class Event:
    def set(self) -> None: ...


def until_it_spawns(flow: Flow[object]) -> Spawn[object] | None:
    """Run it until it has an attempt begun; None if it waits without that."""
    op = flow.send(None)
    while op is NOW or op is NEW_EVENT:
        op = flow.send(1.0 if op is NOW else Event())
    return op if isinstance(op, Spawn) else None


@pytest.mark.parametrize("wait", [Dialer(attempt, id, 1.0, ERRORS).wait, SingleFlight(attempt, 0.0).wait])
def test_an_attempt_that_never_began_is_begun_by_the_next(wait: Wait) -> None:
    struck, waits = wait(9.0), wait(9.0)
    spawned = until_it_spawns(struck)
    assert spawned is not None
    with pytest.raises(KeyboardInterrupt):
        struck.throw(KeyboardInterrupt())
    again = until_it_spawns(waits)
    assert again is not None
    first = again.flow.send(None)
    assert first is NOW
    late = spawned.flow  # it was begun after all
    with pytest.raises(StopIteration):
        late.send(None)
