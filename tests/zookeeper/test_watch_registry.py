"""Who is told what, in which order; and that nothing is kept for those who have left."""

from __future__ import annotations

from holdfast.backends.zookeeper.claim_state import GAP
from holdfast.backends.zookeeper.claim_tracker import ClaimTracker
from holdfast.backends.zookeeper.ops import Unwatch, Watches, acl
from holdfast.backends.zookeeper.session import CREATED, DATA_CHANGED, DELETED
from holdfast.backends.zookeeper.watch_registry import WatchRegistry


def board() -> WatchRegistry:
    return WatchRegistry(ClaimTracker(acl()))


def test_news_are_in_order_and_heard_once() -> None:
    one = board()
    assert one.connect("me", [Watches(["/a", "/b"], ("/~c",))])
    assert one.events([(DELETED, "/b"), (CREATED, "/~c")]) == ["me", "me"]
    assert one.hear("me") == ["/b", "/~c"]
    assert one.hear("me") == []
    assert one.events([(DELETED, "/a"), (DELETED, "/b")]) == ["me"], "a watch fires once"


def test_a_lost_connection_is_a_gap_in_the_news() -> None:
    one = board()
    one.connect("me", [Watches(["/a"])])
    one.lost()
    one.events([(DELETED, "/a")])
    assert one.hear("me") == [GAP, "/a"]


def test_what_is_written_to_a_node_is_no_news_to_who_waits_for_its_end() -> None:
    one = board()
    one.connect("me", [Watches(["/a"])])
    assert one.events([(DATA_CHANGED, "/a")]) == []
    assert one.events([(DELETED, "/a")]) == ["me"]
    assert one.hear("me") == ["/a"]


def test_what_will_never_be_made_is_forgotten() -> None:
    one = board()
    for owner in ("me", "other", "third"):
        one.connect(owner, [Watches([], ("/~a",))])
    one.connect("me", [Watches([], ("/~b",))])
    one.connect("me", [Unwatch("/~b")])
    one.forget("other")
    assert one._watchers == {"/~a": ["third"]}
    one.lost()
    assert one._watchers == {}
    assert one._expected == {}
