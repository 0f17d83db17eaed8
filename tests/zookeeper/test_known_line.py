"""Going on from a listing: never granted too early, and in the end granted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.backends.zookeeper.jute import Stat
from holdfast.backends.zookeeper.known_line import KnownLine
from holdfast.backends.zookeeper.paths import QueueEntry, entry_of, prefix_of, slot_prefix, tombstone_of, will_of
from holdfast.backends.zookeeper.queue import Verdict, judge, line_of
from holdfast.model import LockSpec

SESSION = 5
PARENT = Stat(3, 3, 0, 0, 0, 9, 0, 0, 0, 9, 9)


def node(number: int, weight: int = 1, capacity: int = 1, **options: float) -> str:
    spec = LockSpec("x", weight=weight, capacity=capacity, **options)  # type: ignore[arg-type]
    return f"{prefix_of(f'owner{number}', SESSION, spec)}{number:010d}"


def known_of(*nodes: str) -> KnownLine | None:
    return KnownLine.of(line_of(nodes), PARENT, SESSION)


def entry(name: str) -> QueueEntry:
    found = entry_of(name)
    assert found is not None
    return found


def judged(nodes: list[str], mine: str) -> Verdict:
    return judge(line_of(nodes), entry(mine))


@given(st.data())
def test_what_has_ended_unheard_grants_nobody_too_early_and_what_was_heard_is_no_hindrance(data: st.DataObject) -> None:
    capacity = data.draw(st.integers(1, 4))
    weights = data.draw(st.lists(st.integers(1, capacity), min_size=1, max_size=60))
    line = [node(number, weight, capacity) for number, weight in enumerate(weights)]
    mine = line[data.draw(st.integers(0, len(line) - 1))]
    ended = data.draw(st.sets(st.sampled_from(line))) - {mine}
    heard = {each for each in ended if data.draw(st.booleans())}
    standing = [each for each in line if each not in ended]
    known = known_of(*line)
    assert known is not None
    for each in heard:
        known.remove(each, SESSION)
    before = known.before(mine, SESSION)
    assert before is not None
    found, real = judged(before, mine), judged(standing, mine)
    if found.granted:
        full = judged([each for each in line if each not in heard], mine)
        assert full.granted == found.granted  # as if it had seen all of it
        assert full.predecessor == found.predecessor
    if found.granted:
        assert real.granted
    else:
        assert found.watch
        if not ended & set(found.watch):  # it will be told before it can be granted
            assert not real.granted


def test_a_claim_of_ours_that_has_the_next_number_is_known() -> None:
    known = known_of(node(1), node(2))
    assert known is not None
    known.append(entry(node(4)), SESSION)
    assert known.before(node(4), SESSION) is None  # somebody else may be before it
    known.append(entry(node(3)), SESSION + 1)
    assert known.before(node(3), SESSION) is None
    known.append(entry(node(3)), SESSION)
    assert known.before(node(3), SESSION) == [node(1), node(2), node(3)]
    assert known.before(node(3), SESSION + 1) is None
    known.append(entry(node(4, capacity=2)), SESSION)
    assert known.before(node(4, capacity=2), SESSION) is None


def test_what_another_session_has_heard_does_not_count() -> None:
    """It may have happened after what this one reads."""
    known = known_of(node(1), node(2))
    assert known is not None
    known.remove(node(1), SESSION + 1)
    known.remove_before(node(2), SESSION + 1)
    assert known.before(node(2), SESSION) == [node(1), node(2)]
    known.remove_before(node(2), SESSION)
    assert known.before(node(2), SESSION) == [node(2)]


def test_only_a_plain_line_is_remembered() -> None:
    plain = node(1)
    late = LockSpec("x", lock_delay=1.0)
    for other in (
        node(2, lock_delay=1.0),
        node(2, hold_at_least=1.0),
        node(2, capacity=2),
        will_of("owner1", late),
        tombstone_of("gone", 1, 1, 1.0),
        f"{slot_prefix('owner1', LockSpec('x'))}0000000002",
    ):
        assert known_of(plain, other) is None, other
    assert known_of() is None
    assert known_of(plain, "0123456789abcdef__lock__0000000002") is not None  # kazoo's


def test_a_parent_that_was_written_to_or_made_anew_is_another() -> None:
    known = known_of(node(1))
    assert known is not None
    assert known.is_of(PARENT)
    assert known.is_of(PARENT._replace(cversion=10, pzxid=10, children=1))
    assert not known.is_of(PARENT._replace(mzxid=4))
    assert not known.is_of(PARENT._replace(czxid=4))


def test_of_a_long_line_so_many_are_shown_as_it_takes() -> None:
    line = [node(number) for number in range(1000)]
    known = known_of(*line)
    assert known is not None
    before = known.before(line[-1], SESSION)
    assert before is not None
    assert before[-2:] == line[-2:]
    assert len(before) < 30
    predecessor = judged(before, line[-1]).predecessor
    assert predecessor is not None
