"""The line, read off a listing: who is granted, and that no waiter can be granted unseen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.backends.zookeeper.paths import entry_of, name_of, prefix_of, step
from holdfast.backends.zookeeper.queue import granted_of, judge, keeps_slot, line_of
from holdfast.model import SHARED_CAPACITY, LockSpec


def node(owner: str, number: int, weight: int = 1, capacity: int = 1, fair: bool = True, mode: str = "permit") -> str:
    spec = LockSpec("x", weight=weight, capacity=capacity, fair=fair, mode=mode)
    return f"{prefix_of(owner, 5, spec)}{number:010d}"


def verdict(children: list[str], owner: str) -> object:
    snapshot = line_of(children)
    mine = next((entry for entry in snapshot.claims if entry.owner == owner), None)
    assert mine is not None
    return judge(snapshot, mine)


def watched(children: list[str], owner: str) -> list[str]:
    snapshot = line_of(children)
    mine = next((entry for entry in snapshot.claims if entry.owner == owner), None)
    assert mine is not None
    return [entry.owner for name in judge(snapshot, mine).watch if (entry := entry_of(name)) is not None]


def test_a_mutex_watches_its_predecessor_alone() -> None:
    line = [node("c", 9), node("a", 7), node("b", 8)]
    assert granted_of(line_of(line)) == {"a"}
    assert watched(line, "b") == ["a"]
    assert watched(line, "c") == ["b"]


def test_a_claim_that_lapsed_and_came_again_stands_where_its_new_node_is() -> None:
    """Its old node is still there for a moment, before somebody else's: that is no reason to be granted."""
    line = [node("me", 7), node("other", 8), node("me", 9)]
    snapshot = line_of(line)
    mine = snapshot.find(node("me", 9))
    assert mine is not None
    assert not judge(snapshot, mine).granted
    assert judge(snapshot, mine).watch == [node("other", 8)]


def test_the_number_wraps() -> None:
    """2³¹ − 1 is followed by −2³¹."""
    line = [
        f"{prefix_of('late', 5, LockSpec('x'))}{-(1 << 31):010d}",
        f"{prefix_of('early', 5, LockSpec('x'))}{(1 << 31) - 1:010d}",
    ]
    assert [entry.owner for entry in line_of(line).claims] == ["early", "late"]
    assert granted_of(line_of(line)) == {"early"}


def test_the_order_is_that_of_the_number_not_of_the_name() -> None:
    line = [node("zz", 1), node("aa", 2)]
    assert granted_of(line_of(line)) == {"zz"}


def test_permits_watch_the_nearest_so_that_a_release_in_order_wakes_one() -> None:
    line = [node(owner, number, capacity=3) for number, owner in enumerate("abcdef")]
    assert granted_of(line_of(line)) == {"a", "b", "c"}
    assert sorted(watched(line, "d")) == ["a", "b", "c"]
    assert sorted(watched(line, "e")) == ["b", "c", "d"]
    assert sorted(watched(line, "f")) == ["c", "d", "e"]


def test_readers_watch_the_writer_and_a_writer_one_reader() -> None:
    def reader(owner: str, number: int) -> str:
        return node(owner, number, 1, SHARED_CAPACITY, mode="read")

    def writer(owner: str, number: int) -> str:
        return node(owner, number, SHARED_CAPACITY, SHARED_CAPACITY, mode="write")

    line = [reader("r1", 1), reader("r2", 2), writer("w", 3), reader("r3", 4), reader("r4", 5)]
    assert granted_of(line_of(line)) == {"r1", "r2"}
    assert watched(line, "w") == ["r2"]
    assert watched(line, "r3") == ["w"]
    assert watched(line, "r4") == ["w"]


def test_another_capacity_is_named() -> None:
    line = [node("a", 1, capacity=3), node("b", 2, capacity=4), node("c", 3, capacity=3)]
    snapshot = line_of(line)
    b = snapshot.find(line[1])
    assert b is not None
    assert judge(snapshot, b).capacity == 3
    assert granted_of(snapshot) == {"a", "c"}, "who is about to leave does not count"


def test_kazoo_is_a_claim_that_takes_all() -> None:
    line = ["0f" * 16 + "__lock__0000000001", node("b", 2, capacity=3)]
    assert granted_of(line_of(line)) == {"0f" * 16}
    assert entry_of("lost+found") is None


def test_a_ghost_and_an_orphaned_will_occupy() -> None:
    for marker in ("~ghost.x.1.1.500", "~will.x.1.1.500"):
        assert granted_of(line_of([marker, node("b", 2)])) == set()
    assert granted_of(line_of(["~will.b.1.1.500", node("b", 2)])) == {"b"}


def test_a_seat_counts_for_all_who_see_it() -> None:
    line = [node("a", 1, 2, 3), node("h", 2, 3, 3), node("u", 3, 1, 3, fair=False)]
    snapshot = line_of(line)
    u = snapshot.find(line[2])
    assert u is not None
    assert judge(snapshot, u).fits
    slot = "~seat.u.1.3.0000000004"
    assert keeps_slot(line_of([*line, slot]), u)
    assert not keeps_slot(line_of([*line[1:], slot]), u), "the heavy one may have been granted before the seat"
    assert granted_of(line_of([*line[1:], slot])) == {"u"}, "whoever looks later waits for the seat"
    other = "~seat.v.1.3.0000000003"
    assert not keeps_slot(line_of([*line, node("v", 5, 1, 3, fair=False), other, slot]), u), "the older seat counts"


NAMES = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=40)


@given(NAMES, NAMES)
def test_any_name_is_one_step_of_a_path_and_comes_back(one: str, other: str) -> None:
    assert name_of(step(one)) == one
    assert "/" not in step(one)
    assert step(one).isascii()
    assert step(one) not in (".", "..", "%rates", "%clock")
    assert (step(one) == step(other)) == (one == other)


CLAIMS = st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=9)


@given(CLAIMS, st.integers(4, 6), st.data())
def test_nobody_is_granted_unseen_and_never_too_many(
    claims: list[tuple[int, bool]], capacity: int, data: st.DataObject
) -> None:
    """Let claims leave in any order: whoever becomes granted had a watch on somebody who left since its last look."""
    line = [node(f"o{n}", n, weight, capacity) for n, (weight, _) in enumerate(claims)]
    watching: dict[str, set[str]] = {}
    granted: set[str] = set()
    while line:
        snapshot = line_of(line)
        for entry in snapshot.claims:
            how = judge(snapshot, entry)
            if entry.owner in granted:
                assert how.granted, "a grant was taken back"
            elif how.granted:
                assert entry.owner not in watching or watching[entry.owner] - set(line), "nobody woke it"
                granted.add(entry.owner)
            elif entry.owner not in watching or watching[entry.owner] - set(line):  # first look, or woken
                watching[entry.owner] = set(how.watch)
        assert {entry.owner for entry in snapshot.claims} & granted == granted_of(snapshot)
        assert sum(entry.weight for entry in snapshot.claims if entry.owner in granted) <= capacity
        assert granted_of(snapshot), "somebody is always first"
        left = data.draw(st.sampled_from(line))
        line.remove(left)
        granted -= {entry.owner for entry in snapshot.claims if entry.node == left}
