"""A try at several names undoes only what it entered itself: a late double of it leaves its owner's hold alone."""

from __future__ import annotations

from holdfast.backends.execute import Moment
from holdfast.backends.memory.store import MemoryStore
from holdfast.backends.queue_backend import Release, Survey, Take
from holdfast.model import Claim, LockSpec, LockView


def claim(name: str, owner: str) -> Claim:
    return Claim(LockSpec(name), owner, owner)


def test_a_late_double_of_a_try_leaves_what_its_owner_holds() -> None:
    store = MemoryStore()
    mine = (claim("a", "me-a"), claim("b", "me-b"))
    replies, _ = store.carry_out(Take(mine, queue=False), Moment(1, 1))
    assert all(taken.token for taken in replies)
    store.carry_out(Release(mine[1], 0.0), Moment(2, 2))
    store.carry_out(Take((claim("b", "other"),), queue=True), Moment(3, 3))

    again, _ = store.carry_out(Take(mine, queue=False), Moment(4, 4))

    assert [taken.token for taken in again] == [0, 0]
    views, _ = store.carry_out(Survey("a"), Moment(5, 5))
    assert isinstance(views, list)
    [view] = views
    assert isinstance(view, LockView)
    assert [holder.owner for holder in view.holders] == ["me-a"]
