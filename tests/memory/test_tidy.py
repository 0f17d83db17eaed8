"""TRAPS 57, in memory: a name whose holder never came back is forgotten like any other."""

from __future__ import annotations

from holdfast.backends.execute import SECOND_US, Moment
from holdfast.backends.memory.store import TIDY_EVERY_COUNT, MemoryStore
from holdfast.backends.queue_backend import Take
from holdfast.model import Claim, LockSpec

DAY = 24 * 3600 * SECOND_US


def test_what_was_never_released_is_forgotten() -> None:
    store = MemoryStore()
    for number in range(100):
        claim = Claim(LockSpec(f"job/{number}", ttl=10), f"o{number}", "")
        store.carry_out(Take((claim,), queue=False), Moment(0, 0))
    alive = Claim(LockSpec("alive", ttl=10), "o", "")
    for number in range(2 * TIDY_EVERY_COUNT):
        store.carry_out(Take((alive,), queue=False), Moment(100 * SECOND_US, 3 * DAY + number))
    assert set(store.lines) == {"alive"}
    assert len(store.marks) < 10
