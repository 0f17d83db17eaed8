"""A line as others see it: slots that are being tried on push nobody out."""

from __future__ import annotations

import json

from holdfast.backends.zookeeper.jute import Stat
from holdfast.backends.zookeeper.paths import prefix_of
from holdfast.backends.zookeeper.queue import line_of
from holdfast.backends.zookeeper.views import view_of
from holdfast.model import LockSpec

POOL = LockSpec("pool", weight=1, capacity=2)


def node(owner: str, number: int, fair: bool = True) -> str:
    return f"{prefix_of(owner, 5, LockSpec('pool', weight=1, capacity=2, fair=fair))}{number:010}"


LINE = [node("a", 1), node("b", 2), node("u", 3, fair=False), "~seat.u.1.2.0000000004"]


def read(czxid: int, **about: object) -> tuple[bytes, Stat]:
    return json.dumps({"ttl": 10, **about}).encode(), Stat(czxid, czxid, 7000, 7000, 0, 0, 0, 5, 0, 0, czxid)


def shown(*reads: tuple[bytes, Stat], line: list[str] = LINE) -> tuple[list[int | None], int]:
    view = view_of("pool", line_of(line), dict(zip(line, reads, strict=False)), 7000)
    assert view is not None
    return [claim.token for claim in view.holders], len(view.waiters)


def test_a_seat_that_may_be_given_back_denies_no_holder() -> None:
    assert shown(read(11), read(12), read(13)) == ([11, 12], 1)


def test_a_seat_that_is_kept_counts() -> None:
    """One has left since, and the next in turn waits for the slot."""
    assert shown(read(11), read(12), read(13, token=14)) == ([11, 14], 1)


def test_a_seat_whose_claim_is_gone_does_not_count() -> None:
    line = [*LINE[:2], LINE[3]]
    assert shown(read(11), read(12), line=line) == ([11, 12], 0)
