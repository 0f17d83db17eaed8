"""What every register promises, on every engine, with threads and with asyncio. A test file of an engine imports it all
and has a fixture `place`."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from holdfast.cas import FenceRejected, Missing, Retry, Stats, VersionConflict
from holdfast.errors import HoldfastError, Misconfigured
from tests.cas.faces import Place, at_once

MANY = Retry(attempts=500, timeout=100)


def add_one(old: int) -> int:
    return old + 1


def test_no_update_is_lost_in_a_race(place: Place) -> None:
    """Each thread has a client of its own, and one more is shared by two."""
    stats = Stats()
    place.counter().create(0)
    counters = [place.counter(retry=MANY, stats=stats) for _ in range(3)]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(10):
                counters[number].update(add_one)
        except BaseException as error:  # noqa: BLE001  told below, in the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1, 2, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    assert place.counter().read()[0] == 40
    assert stats.updates == 40
    assert stats.tries == 40 + stats.conflicts
    assert stats.conflict_rate == stats.conflicts / stats.tries


def test_what_is_not_there_is_missing(place: Place) -> None:
    counter = place.counter()
    for attempt in (counter.read, lambda: counter.update(add_one)):
        with pytest.raises(Missing) as missing:
            attempt()
        assert isinstance(missing.value, LookupError)
    assert counter.stats == Stats()


def test_what_is_not_there_begins_as_the_default(place: Place) -> None:
    counter = place.counter()
    assert counter.update(add_one, default=0) == 1
    assert counter.update(add_one, default=0) == 2
    assert place.counter().read()[0] == 2


def test_only_one_creates_it(place: Place) -> None:
    first, second = place.counter(), place.counter()
    version = first.create(5)
    with pytest.raises(VersionConflict):
        second.create(6)
    assert second.read() == (5, version)
    assert second.stats == Stats(updates=0, tries=1, conflicts=1)


def test_the_quicker_one_wins_a_swap(place: Place) -> None:
    first, second = place.counter(), place.counter()
    version = first.create(5)
    assert second.read() == (5, version)
    newer = first.swap(6, version)
    assert newer != version
    with pytest.raises(VersionConflict) as conflict:
        second.swap(7, version)
    assert (conflict.value.version, conflict.value.tries) == (version, 1)
    assert second.read() == (6, newer)
    assert second.swap(7, newer) not in (version, newer)


def test_a_default_that_somebody_else_was_quicker_with_is_not_written(place: Place) -> None:
    slow, quick = place.counter(retry=MANY), place.counter()
    seen: list[int] = []

    def change(old: int) -> int:
        seen.append(old)
        if len(seen) == 1:
            quick.create(10)
        return old + 1

    assert slow.update(change, default=0) == 11
    assert seen == [0, 10]
    assert slow.stats == Stats(updates=1, tries=2, conflicts=1)


@pytest.mark.parametrize(
    ("retry", "tries"),
    [(Retry(attempts=4, timeout=None, base=0.001), 4), (Retry(attempts=1), 1), (Retry(timeout=0), 1)],
)
def test_tries_are_bounded_and_told(place: Place, retry: Retry, tries: int) -> None:
    slow, quick = place.counter(retry=retry), place.counter()
    quick.create(0)

    def change(old: int) -> int:
        quick.update(lambda value: value + 100)
        return old + 1

    with pytest.raises(VersionConflict) as conflict:
        slow.update(change)
    assert conflict.value.tries == tries
    assert slow.stats == Stats(updates=0, tries=tries, conflicts=tries)
    assert slow.stats.conflict_rate == 1.0
    assert place.counter().read()[0] == 100 * tries


def test_an_error_of_the_change_is_the_callers_and_nothing_is_written(place: Place) -> None:
    counter = place.counter()
    version = counter.create(0)
    with pytest.raises(ZeroDivisionError):
        counter.update(lambda old: 1 // old)
    assert counter.read() == (0, version)


def test_the_token_of_a_lease_is_part_of_the_condition(place: Place) -> None:
    old, new = place.counter(), place.counter()
    old.create(0, lease=33)
    assert old.update(add_one, lease=33) == 1
    assert new.update(add_one, lease=34) == 2
    value, version = new.read()
    for attempt in (
        lambda: old.update(add_one, lease=33),  # which has claimed before
        lambda: old.swap(9, version, lease=33),
        lambda: place.counter().update(add_one, lease=33),  # which has not
        lambda: place.counter().create(9, lease=33),
    ):
        refuse(attempt, 33, 34)
    assert new.read() == (value, version) == (2, version)
    assert new.update(add_one, lease=34) == 3


def test_a_stale_holder_is_told_so_also_when_the_value_has_changed(place: Place) -> None:
    """It is both: stale, and too slow. That it is stale is what it must know."""
    old, new = place.counter(), place.counter()
    version = old.create(0, lease=33)
    new.update(add_one, lease=34)
    refuse(lambda: old.swap(9, version, lease=33), 33, 34)


def test_a_newer_holder_that_comes_between_read_and_write(place: Place) -> None:
    old, new = place.counter(), place.counter()
    old.create(0)

    def change(value: int) -> int:
        new.update(lambda value: value + 10, lease=34)
        return value + 1

    refuse(lambda: old.update(change, lease=33), 33, 34)
    assert new.read()[0] == 10


def test_one_register_serves_one_lease_after_the_other(place: Place) -> None:
    counter = place.counter()
    counter.create(0, lease=33)
    assert counter.update(add_one, lease=34) == 1
    refuse(lambda: counter.update(add_one, lease=33), 33, 34)
    assert counter.update(add_one, lease=34) == 2


def test_two_leases_share_a_register(place: Place) -> None:
    """A thread whose lease has ended goes on with the register that the next holder uses, too."""
    shared = place.counter()
    shared.create(0)
    newer = shared if shared.wait is at_once else place.counter()  # a change cannot wait for its own loop

    def change(value: int) -> int:
        on_another_thread(lambda: newer.update(lambda value: value + 10, lease=34))
        on_another_thread(lambda: newer.update(lambda value: value - 10, lease=34))
        return value + 1

    refuse(lambda: shared.update(change, lease=33), 33, 34)
    assert shared.read()[0] == 0


def on_another_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(120)


def test_fence_and_register_have_one_mark(place: Place) -> None:
    counter = place.counter()
    counter.create(0, lease=33)
    refuse(lambda: place.fence(32), 32, 33)
    place.fence(34)
    refuse(lambda: counter.update(add_one, lease=33), 33, 34)
    assert counter.update(add_one, lease=34) == 1


def test_a_newer_token_is_claimed_even_if_its_write_meets_a_conflict(place: Place) -> None:
    """Claim before you read: from then on no older holder can write."""
    old, new = place.counter(), place.counter()
    version = old.create(0, lease=33)
    old.swap(1, version, lease=33)
    with pytest.raises(VersionConflict):
        new.swap(9, version, lease=34)
    refuse(lambda: old.update(add_one, lease=33), 33, 34)


def test_bad_input_is_refused_before_anything_is_sent(place: Place) -> None:
    counter = place.counter()
    version = counter.create(5)

    async def later(old: int) -> int:
        return old

    for attempt in (
        lambda: counter.update("x"),  # type: ignore[arg-type]
        lambda: counter.update(later),  # type: ignore[arg-type]
        lambda: counter.update(lambda old: later(old)),  # type: ignore[arg-type, return-value]
        lambda: counter.update(lambda old: None),  # type: ignore[arg-type, return-value]
        lambda: counter.update(lambda old: "x"),  # type: ignore[arg-type, return-value]
        lambda: counter.update(lambda old: old / 2),  # type: ignore[arg-type, return-value]
        lambda: counter.update(add_one, lease=0),
        lambda: counter.update(add_one, lease="33"),
        lambda: counter.swap(6, None),
        lambda: counter.swap(6, 1.5),
        lambda: counter.create("x"),  # type: ignore[arg-type]
        lambda: place.counter(retry=3),
        lambda: place.counter(stats={}),
        lambda: place.counter(codec=int),
    ):
        with pytest.raises(Misconfigured):
            attempt()
    assert counter.read() == (5, version)


def refuse(attempt: Callable[[], object], token: int, mark: int) -> None:
    with pytest.raises(HoldfastError) as refusal:
        attempt()
    assert isinstance(refusal.value, FenceRejected), refusal.value
    assert (refusal.value.token, refusal.value.mark) == (token, mark)
