"""The flow of an update, without any I/O: its tries, pauses and bounds, in virtual time. And what it counts."""

from __future__ import annotations

import pickle
from collections.abc import Hashable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.flow import NOW, RANDOM, Sleep
from holdfast.cas import Missing, Retry, Stats, VersionConflict, Versioned
from holdfast.cas.update import NO_DEFAULT, Step, update


class Rival:
    """A resource on which somebody else is quicker, so many times."""

    def __init__(self, conflicts: int) -> None:
        self.conflicts, self.value, self.claims, self.reads = conflicts, 0, list[int](), 0

    def claim(self, token: int) -> Step[None]:
        self.claims.append(token)
        yield "claim"

    def read(self) -> Step[Versioned[int]]:
        self.reads += 1
        yield "read"
        return Versioned(self.value, self.value)

    def write(self, value: int, version: Hashable, token: int | None) -> Step[Versioned[int]]:
        yield "write"
        if self.conflicts:
            self.conflicts -= 1
            self.value += 100
        if version != self.value:
            raise VersionConflict("the rival", "n", version)
        self.value = value
        return Versioned(value, value)


def drive(flow: Step[Any], took: float, chance: float = 0.999) -> tuple[Any, list[float]]:
    """Run it; each request takes so long. The result, or the error, and the pauses."""
    now, pauses, answer = 0.0, list[float](), None
    try:
        while True:
            op = flow.send(answer)
            answer = None
            if isinstance(op, Sleep):
                pauses.append(op.seconds)
                now += op.seconds
            elif op is NOW:
                answer = now
            elif op is RANDOM:
                answer = chance
            else:
                now += took
    except StopIteration as stop:
        return stop.value, pauses
    except VersionConflict as error:
        return error, pauses


@given(st.integers(0, 12), st.integers(1, 8), st.floats(0, 0.3), st.floats(0.1, 2))
def test_an_update_ends_within_its_bounds(conflicts: int, attempts: int, took: float, timeout: float) -> None:
    rival, stats, retry = Rival(conflicts), Stats(), Retry(attempts, timeout, 0.01, 0.05)
    result, pauses = drive(update(rival, lambda old: old + 1, NO_DEFAULT, None, retry, stats), took)
    tries = stats.tries
    assert rival.reads == tries == len(pauses) + 1
    assert 1 <= tries <= attempts
    assert all(pause <= min(0.05, 0.01 * 2**number) for number, pause in enumerate(pauses))
    assert sum(pauses) + 2 * took * (tries - 1) <= timeout  # when the last try began
    if isinstance(result, VersionConflict):
        assert result.tries == stats.conflicts == tries <= conflicts
        assert stats.updates == 0
        assert tries == attempts or sum(pauses) + 2 * took * tries + 0.05 >= timeout
        assert rival.value == 100 * tries
    else:
        assert result == rival.value == 100 * conflicts + 1
        assert stats == Stats(updates=1, tries=conflicts + 1, conflicts=conflicts)


def test_a_token_is_claimed_once_and_before_the_first_read() -> None:
    rival = Rival(3)
    flow = update(rival, lambda old: old + 1, NO_DEFAULT, 33, Retry(), Stats())
    assert next(flow) is NOW
    assert flow.send(0.0) == "claim"
    assert rival.reads == 0
    assert flow.send(None) == "read"
    flow.close()
    drive(update(rival, lambda old: old + 1, NO_DEFAULT, 34, Retry(), Stats()), 0.01)
    assert rival.claims == [33, 34]


def test_errors_can_be_pickled_and_say_what_to_do() -> None:
    conflict = pickle.loads(pickle.dumps(VersionConflict("the node", "/n", 3, tries=7)))
    assert (conflict.resource, conflict.key, conflict.version, conflict.tries) == ("the node", "/n", 3, 7)
    assert "in none of 7 tries" in str(conflict)
    assert "take a lock" in str(conflict)
    missing = pickle.loads(pickle.dumps(Missing("the node", "/n")))
    assert str(missing) == "the node '/n' is not there; nothing was changed. Create it first"


def test_a_rate_of_nothing_is_none() -> None:
    assert Stats().conflict_rate == 0.0
