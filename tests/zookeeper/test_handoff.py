"""Who is granted by the end of another claim without a look, and who is not: by hand, with what the watches tell."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.flow import Call, Now
from holdfast.backends.zookeeper.acquire import AcquireFlows
from holdfast.backends.zookeeper.handoff import Handoff, release_ops
from holdfast.backends.zookeeper.jute import Stat
from holdfast.backends.zookeeper.line import Heir, granted_of, judge, picture_of
from holdfast.backends.zookeeper.ops import Create, Delete, Multi, Unwatch, Watches, acl
from holdfast.backends.zookeeper.paths import entry_of, farewell_of, prefix_of, seat_prefix, will_of
from holdfast.backends.zookeeper.places import GAP, Place
from holdfast.backends.zookeeper.release import ReleaseFlows
from holdfast.backends.zookeeper.requests import Batch, Farewell
from holdfast.backends.zookeeper.tombstones import Tombstones
from holdfast.backends.zookeeper.tree import Tree
from holdfast.model import Claim, Grant, LockSpec, Queued

TTL = 30.0
ASK = LockSpec("x", ttl=TTL)


def node(owner: str, number: int, **options: Any) -> str:
    return f"{prefix_of(owner, 5, LockSpec('x', **options))}{number:010d}"


def heir_of(*line: str) -> Heir | None:
    """What the last of the line is told."""
    picture = picture_of(line)
    mine = picture.find(line[-1])
    assert mine is not None
    return judge(picture, mine).heir


FIRST, SECOND, MINE = node("first", 1), node("second", 2), node("me", 3)


def test_an_heir_knows_of_whom_and_whether_that_one_is_granted() -> None:
    after_the_first, after_the_second = heir_of(FIRST, SECOND), heir_of(FIRST, SECOND, MINE)
    assert after_the_first is not None
    assert (after_the_first.of.node, after_the_first.first) == (FIRST, True)
    assert after_the_second is not None
    assert (after_the_second.of.node, after_the_second.first) == (SECOND, False)


@pytest.mark.parametrize(
    "line",
    [
        [node("first", 1, lock_delay=1.0), MINE],
        [node("first", 1, hold_at_least=1.0), MINE],
        [node("first", 1, fair=False), MINE],
        [FIRST, node("me", 2, fair=False)],
        [node("r", 1, capacity=4), node("s", 2, capacity=4, weight=2), node("me", 3, capacity=4, weight=4)],
        [FIRST, f"{seat_prefix('first', ASK)}0000000002", MINE],
        [FIRST, will_of("first", LockSpec("x", lock_delay=1.0)), MINE],
        [FIRST, will_of("nobody", LockSpec("x", lock_delay=1.0)), MINE],
    ],
    ids=["delay", "lingers", "seated", "may-skip", "takes-not-all", "seat", "will", "ghost"],
)
def test_where_more_has_to_be_known_there_is_no_heir(line: list[str]) -> None:
    assert heir_of(*line) is None


LINES = st.lists(st.tuples(st.sampled_from([1, 2, 4]), st.booleans()), min_size=2, max_size=7)


@given(LINES, st.data())
def test_an_heir_is_granted_whoever_left_before_it(claims: list[tuple[int, bool]], data: st.DataObject) -> None:
    """Once the claim that it watches was granted and is gone, a look would say the same."""
    line = [node(f"o{n}", n, weight=weight, capacity=4, fair=fair) for n, (weight, fair) in enumerate(claims)]
    heir = heir_of(*line)
    while heir is not None and heir.of.node in line:
        granted = granted_of(picture_of(line))
        gone = heir.of.node if heir.of.owner in granted else data.draw(st.sampled_from(line[:-1]))
        if gone == heir.of.node and heir.of.owner not in granted:
            return  # it gave up, and makes nobody its heir
        assert not (heir.first and heir.of.owner not in granted), "the first of a line is granted"
        line.remove(gone)
    if heir is not None:
        assert f"o{len(claims) - 1}" in granted_of(picture_of(line))


class FakeLink:
    lasts = TTL
    proved = 100.0

    def unheard(self, now: float) -> float:
        return 0.0

    def keep(self, place: Place) -> None:
        pass  # nobody looks into the book here


def waiting(heir: Heir | None) -> Place:
    return Place(Claim(ASK, "me", "actor"), "/h/x", 110.0, True, FakeLink(), 5, MINE, 7, heir=heir)


def news_of(place: Place, *news: str, ours: Place | None = None, now: float = 101.0) -> Grant | None:
    """What comes of it, for a place that has looked."""
    places = {"me": place} if ours is None else {"me": place, ours.claim.owner: ours}
    inheriting = Handoff(places)
    inheriting.watching(place, [place.heir.of.node] if place.heir else [], place.heir)
    flow = inheriting.inherit(place.claim, [path if path == GAP else f"/h/x/{path}" for path in news])
    try:
        assert isinstance(flow.send(None), Now)
        flow.send(now)
    except StopIteration as stop:
        grant: Grant | None = stop.value
        return grant
    raise AssertionError("it asks for more than the time")


def entry(node: str) -> Any:
    found = entry_of(node)
    assert found is not None
    return found


def test_the_end_of_the_first_is_a_grant_that_counts_from_the_leaders_last_word() -> None:
    place = waiting(Heir(entry(FIRST), True))
    grant = news_of(place, FIRST)
    assert grant == Grant(7, 100.0, TTL)
    assert (place.granted, place.until) == (101.0, 131.0)


@pytest.mark.parametrize(
    ("heir", "news", "granted"),
    [
        (Heir(entry(SECOND), False), [farewell_of(SECOND), SECOND], True),
        (Heir(entry(SECOND), False), [farewell_of(SECOND)], True),
        (Heir(entry(SECOND), False), [SECOND], False),
        (Heir(entry(FIRST), True), [SECOND], False),
        (Heir(entry(FIRST), True), [MINE, FIRST], False),
        (Heir(entry(SECOND), False), [MINE, farewell_of(SECOND), SECOND], False),
        (Heir(entry(FIRST), True), [GAP, FIRST], False),
        (None, [FIRST], False),
    ],
    ids=["farewell", "told-first", "gave-up", "another", "own-node-gone", "own-gone-farewell", "gap", "no-heir"],
)
def test_what_the_news_say(heir: Heir | None, news: list[str], granted: bool) -> None:
    assert (news_of(waiting(heir), *news) is not None) is granted


@pytest.mark.parametrize(("options", "granted"), [({"granted": 90.0}, True), ({}, False)])
def test_of_a_claim_of_our_own_we_know_whether_it_was_granted(options: dict[str, Any], granted: bool) -> None:
    ours = Place(Claim(ASK, "second", "actor"), "/h/x", 110.0, True, FakeLink(), 5, SECOND, 6, **options)
    place = waiting(Heir(entry(SECOND), False))
    assert (news_of(place, SECOND, ours=ours) is not None) is granted
    assert place.ahead is (None if granted else ours), "or all that ever held it would be remembered"
    ours.minted = True
    assert news_of(waiting(Heir(entry(SECOND), False)), SECOND, ours=ours) is None, "its heir needs another token, too"


def test_it_looks_where_the_leaders_word_is_old_or_its_place_has_lapsed() -> None:
    assert news_of(waiting(Heir(entry(FIRST), True)), FIRST, now=100.0 + 0.16 * TTL) is None
    place = waiting(Heir(entry(FIRST), True))
    place.gone = "expired"
    assert news_of(place, FIRST) is None


def test_what_is_watched() -> None:
    """The claim before it, its own, and the farewell of one that is not the first and not ours; all in one request."""
    place = waiting(None)
    inheriting = Handoff({"me": place})
    heir = Heir(entry(SECOND), False)
    [op] = inheriting.watching(place, [SECOND], heir)
    assert op == Watches([f"/h/x/{SECOND}", f"/h/x/{MINE}"], (f"/h/x/{farewell_of(SECOND)}",))
    assert inheriting.watching(place, [SECOND], heir) == []
    assert inheriting.watching(place, [FIRST], Heir(entry(FIRST), True)) == [
        Unwatch(f"/h/x/{farewell_of(SECOND)}"),
        Watches([f"/h/x/{FIRST}"]),
    ], "who has ended without a farewell is not waited for"


def test_only_a_hold_with_company_says_farewell() -> None:
    def ops(**options: Any) -> list[Any]:
        place = waiting(None)
        for name, value in options.items():
            setattr(place, name, value)
        return [type(op) for op in release_ops(place, acl())]

    assert ops() == [Delete], "it gave up its place"
    assert ops(granted=1.0) == [Delete], "it was alone"
    assert ops(granted=1.0, heirs=True) == [Farewell]
    assert ops(granted=1.0, heirs=True, minted=True) == [Delete], "its heir would have too low a token"
    assert ops(expects="/h/x/~one") == [Unwatch, Delete]
    assert ops(granted=1.0, heirs=True, claim=Claim(LockSpec("x", capacity=3), "me", "actor")) == [Delete]
    place = waiting(None)
    place.granted, place.heirs = 1.0, True
    [step] = release_ops(place, acl())
    assert isinstance(step, Farewell)
    steps = (Create(place.farewell, b"", acl()), Delete(place.farewell), Delete(place.path))
    assert (step.kind, step.body()) == (Multi.kind, Multi(steps).body())


@pytest.mark.parametrize(
    ("version", "mzxid", "expected"),
    [(0, 1, (True, "")), (1, 3, (False, farewell_of(FIRST))), (1, 9, None)],
    ids=["never", "before-mine", "after-mine"],
)
def test_where_somebody_was_granted_out_of_turn_the_first_may_be_about_to_mint_its_token(
    version: int, mzxid: int, expected: tuple[bool, str] | None
) -> None:
    tree, place = Tree("/h", acl()), waiting(None)
    places = {"me": place}
    traces = Tombstones(tree, 5.0)
    taking = AcquireFlows(tree, places, ReleaseFlows(places, traces, 5.0), traces, lambda claim: b"{}", 5.0)
    parent = Stat(1, mzxid, 7000, 7000, version, 0, 0, 0, 0, 2, 5)
    flow = taking._decide(place, ([FIRST, MINE], parent), 100.0, 5.0, True)
    op = flow.send(None)
    assert isinstance(op, Call)
    assert isinstance(op.request, Batch)
    with pytest.raises(StopIteration) as ended:
        flow.send([True] * len(op.request.ops))
    assert isinstance(ended.value.value, Queued)
    if expected is None:
        assert place.heir is None
    else:
        assert place.heir is not None
        assert (place.heir.first, place.expects.removeprefix("/h/x/")) == expected
