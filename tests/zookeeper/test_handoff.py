"""Who is granted by the end of another claim without a look, and who is not: by hand, with what the watches tell."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.flow import Call, Now
from holdfast.backends.zookeeper.acquire import AcquireFlows
from holdfast.backends.zookeeper.claim_state import GAP, ClaimState
from holdfast.backends.zookeeper.handoff import Handoff, release_ops
from holdfast.backends.zookeeper.jute import Stat
from holdfast.backends.zookeeper.ops import Create, Delete, Multi, Unwatch, Watches, acl
from holdfast.backends.zookeeper.paths import end_note_of, entry_of, handoff_marker_of, prefix_of, slot_prefix, will_of
from holdfast.backends.zookeeper.queue import PrecedingClaim, granted_of, judge, line_of
from holdfast.backends.zookeeper.release import ReleaseFlows
from holdfast.backends.zookeeper.requests import Batch, HandoffRelease
from holdfast.backends.zookeeper.tombstones import Tombstones
from holdfast.backends.zookeeper.tree import Tree
from holdfast.model import Claim, Grant, LockSpec, Queued

TREE = Tree("/h", acl())
TTL = 30.0
ASK = LockSpec("x", ttl=TTL)


def node(owner: str, number: int, **options: Any) -> str:
    return f"{prefix_of(owner, 5, LockSpec('x', **options))}{number:010d}"


def heir_of(*line: str) -> PrecedingClaim | None:
    """What the last of the line is told."""
    snapshot = line_of(line)
    mine = snapshot.find(line[-1])
    assert mine is not None
    return judge(snapshot, mine).predecessor


FIRST, SECOND, MINE = node("first", 1), node("second", 2), node("me", 3)


def test_an_heir_knows_of_whom() -> None:
    after_the_first, after_the_second = heir_of(FIRST, SECOND), heir_of(FIRST, SECOND, MINE)
    assert after_the_first is not None
    assert after_the_first.entry.node == FIRST
    assert after_the_second is not None
    assert after_the_second.entry.node == SECOND


@pytest.mark.parametrize(
    "line",
    [
        [node("first", 1, lock_delay=1.0), MINE],
        [node("first", 1, hold_at_least=1.0), MINE],
        [node("first", 1, fair=False), MINE],
        [FIRST, node("me", 2, fair=False)],
        [node("r", 1, capacity=4), node("s", 2, capacity=4, weight=2), node("me", 3, capacity=4, weight=4)],
        [FIRST, f"{slot_prefix('first', ASK)}0000000002", MINE],
        [FIRST, will_of("first", LockSpec("x", lock_delay=1.0)), MINE],
        [FIRST, will_of("nobody", LockSpec("x", lock_delay=1.0)), MINE],
        [node("first", 1, robust=True), MINE],
        [FIRST, end_note_of(node("nobody", 0)), MINE],
    ],
    ids=["delay", "lingers", "seated", "may-skip", "takes-not-all", "seat", "will", "ghost", "robust", "end-note"],
)
def test_where_more_has_to_be_known_there_is_no_heir(line: list[str]) -> None:
    assert heir_of(*line) is None


LINES = st.lists(st.tuples(st.sampled_from([1, 2, 4]), st.booleans()), min_size=2, max_size=7)


@given(LINES, st.data())
def test_an_heir_is_granted_whoever_left_before_it(claims: list[tuple[int, bool]], data: st.DataObject) -> None:
    """Once the claim that it watches was granted and is gone, a look would say the same."""
    line = [node(f"o{n}", n, weight=weight, capacity=4, fair=fair) for n, (weight, fair) in enumerate(claims)]
    predecessor = heir_of(*line)
    while predecessor is not None and predecessor.entry.node in line:
        granted = granted_of(line_of(line))
        gone = predecessor.entry.node if predecessor.entry.owner in granted else data.draw(st.sampled_from(line[:-1]))
        if gone == predecessor.entry.node and predecessor.entry.owner not in granted:
            return  # it gave up, and makes nobody its successor
        line.remove(gone)
    if predecessor is not None:
        assert f"o{len(claims) - 1}" in granted_of(line_of(line))


class FakeLink:
    lasts = TTL
    proved = 100.0

    def unheard(self, now: float) -> float:
        return 0.0

    def wake(self, owner: str) -> None:
        pass  # nobody waits

    def keep(self, state: ClaimState) -> None:
        pass  # nobody looks into the tracker here


def waiting(predecessor: PrecedingClaim | None) -> ClaimState:
    return ClaimState(Claim(ASK, "me", "actor"), "/h/x", 110.0, True, FakeLink(), 5, MINE, 7, predecessor=predecessor)


def news_of(state: ClaimState, *news: str, ours: ClaimState | None = None, now: float = 101.0) -> Grant | None:
    """What comes of it, for a place that has looked."""
    states = {"me": state} if ours is None else {"me": state, ours.claim.owner: ours}
    inheriting = Handoff(states, TREE)
    inheriting.watching(state, [state.predecessor.entry.node] if state.predecessor else [], state.predecessor)
    flow = inheriting.inherit(state.claim, [path if path == GAP else f"/h/x/{path}" for path in news])
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


def test_a_handoff_is_a_grant_that_counts_from_the_leaders_last_word() -> None:
    state = waiting(PrecedingClaim(entry(FIRST)))
    grant = news_of(state, handoff_marker_of(FIRST), FIRST)
    assert grant == Grant(7, 100.0, TTL)
    assert (state.granted, state.until) == (101.0, 131.0)


@pytest.mark.parametrize(
    ("predecessor", "news", "granted"),
    [
        (PrecedingClaim(entry(SECOND)), [handoff_marker_of(SECOND), SECOND], True),
        (PrecedingClaim(entry(SECOND)), [handoff_marker_of(SECOND)], True),
        (PrecedingClaim(entry(SECOND)), [SECOND], False),
        (PrecedingClaim(entry(FIRST)), [FIRST], False),
        (PrecedingClaim(entry(FIRST)), [SECOND], False),
        (PrecedingClaim(entry(FIRST)), [MINE, FIRST], False),
        (PrecedingClaim(entry(SECOND)), [MINE, handoff_marker_of(SECOND), SECOND], False),
        (PrecedingClaim(entry(FIRST)), [GAP, FIRST], False),
        (None, [FIRST], False),
    ],
    ids=[
        "farewell",
        "told-first",
        "gave-up",
        "may-be-evicted",
        "another",
        "own-node-gone",
        "own-gone-farewell",
        "gap",
        "no-heir",
    ],
)
def test_what_the_news_say(predecessor: PrecedingClaim | None, news: list[str], granted: bool) -> None:
    assert (news_of(waiting(predecessor), *news) is not None) is granted


@pytest.mark.parametrize(
    ("options", "granted"),
    [({"granted": 90.0, "leaving": True}, True), ({"granted": 90.0}, False), ({"leaving": True}, False), ({}, False)],
    ids=["released", "evicted", "gave-up", "evicted-while-it-waited"],
)
def test_of_a_claim_of_our_own_we_know_whether_it_was_granted(options: dict[str, Any], granted: bool) -> None:
    ours = ClaimState(Claim(ASK, "second", "actor"), "/h/x", 110.0, True, FakeLink(), 5, SECOND, 6, **options)
    state = waiting(PrecedingClaim(entry(SECOND)))
    assert (news_of(state, SECOND, ours=ours) is not None) is granted
    assert state.ahead is (None if granted else ours), "or all that ever held it would be remembered"
    ours.minted = True
    assert news_of(waiting(PrecedingClaim(entry(SECOND))), SECOND, ours=ours) is None, (
        "its heir needs another token, too"
    )


def test_it_looks_where_the_leaders_word_is_old_or_its_place_has_lapsed() -> None:
    news = handoff_marker_of(FIRST), FIRST
    assert news_of(waiting(PrecedingClaim(entry(FIRST))), *news, now=100.0 + 0.16 * TTL) is None
    state = waiting(PrecedingClaim(entry(FIRST)))
    state.gone = "expired"
    assert news_of(state, *news) is None


def test_what_is_watched() -> None:
    """The claim before it, its own, and the handoff marker of one that is not ours; in one request."""
    state = waiting(None)
    inheriting = Handoff({"me": state}, TREE)
    predecessor = PrecedingClaim(entry(SECOND))
    [op] = inheriting.watching(state, [SECOND], predecessor)
    assert op == Watches([f"/h/x/{SECOND}", f"/h/x/{MINE}"], (f"/h/x/{handoff_marker_of(SECOND)}",))
    assert inheriting.watching(state, [SECOND], predecessor) == []
    assert inheriting.watching(state, [FIRST], PrecedingClaim(entry(FIRST))) == [
        Unwatch(f"/h/x/{handoff_marker_of(SECOND)}"),
        Watches([f"/h/x/{FIRST}"], (f"/h/x/{handoff_marker_of(FIRST)}",)),
    ], "who has ended without a farewell is not waited for"


def test_only_a_hold_with_company_says_farewell() -> None:
    def ops(**options: Any) -> list[Any]:
        state = waiting(None)
        for name, value in options.items():
            setattr(state, name, value)
        return [type(op) for op in release_ops(state, acl())]

    assert ops() == [Delete], "it gave up its place"
    assert ops(granted=1.0) == [Delete], "it was alone"
    assert ops(granted=1.0, may_hand_off=True) == [HandoffRelease]
    assert ops(granted=1.0, may_hand_off=True, minted=True) == [Delete], "its heir would have too low a token"
    assert ops(expects="/h/x/~one") == [Unwatch, Delete]
    assert ops(granted=1.0, may_hand_off=True, claim=Claim(LockSpec("x", capacity=3), "me", "actor")) == [Delete]
    state = waiting(None)
    state.granted, state.may_hand_off = 1.0, True
    [step] = release_ops(state, acl())
    assert isinstance(step, HandoffRelease)
    steps = (Create(state.handoff_marker, b"", acl()), Delete(state.handoff_marker), Delete(state.path))
    assert (step.kind, step.body()) == (Multi.kind, Multi(steps).body())


@pytest.mark.parametrize(
    ("version", "mzxid", "expected"),
    [(0, 1, handoff_marker_of(FIRST)), (1, 3, handoff_marker_of(FIRST)), (1, 9, None)],
    ids=["never", "before-mine", "after-mine"],
)
def test_where_somebody_was_granted_out_of_turn_the_first_may_be_about_to_mint_its_token(
    version: int, mzxid: int, expected: str | None
) -> None:
    tree, state = Tree("/h", acl()), waiting(None)
    states = {"me": state}
    tombstones = Tombstones(tree, 5.0)
    taking = AcquireFlows(tree, states, ReleaseFlows(states, tombstones, 5.0), tombstones, lambda claim: b"{}", 5.0)
    parent = Stat(1, mzxid, 7000, 7000, version, 0, 0, 0, 0, 2, 5)
    flow = taking._decide(state, ([FIRST, MINE], parent), 100.0, 5.0, True)
    op = flow.send(None)
    assert isinstance(op, Call)
    assert isinstance(op.request, Batch)
    with pytest.raises(StopIteration) as ended:
        flow.send([True] * len(op.request.ops))
    assert isinstance(ended.value.value, Queued)
    if expected is None:
        assert state.predecessor is None
    else:
        assert state.predecessor is not None
        assert state.expects.removeprefix("/h/x/") == expected
