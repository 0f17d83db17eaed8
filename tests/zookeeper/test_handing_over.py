"""A lock goes from hand to hand on real servers: without a look where that is safe, and with one where it is not."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import holdfast
from holdfast.backends.zookeeper.claim_state import ClaimState
from holdfast.backends.zookeeper.ops import Delete, List, Prepared
from holdfast.backends.zookeeper.requests import Batch
from holdfast.backends.zookeeper.tree import ParentState
from holdfast.model import Claim, LockSpec
from holdfast.testing.context import HANG_S
from tests.zookeeper.ensemble import Ensemble

TTL = 60.0


class Waiter:
    """One acquisition on a thread and a coordinator of its own."""

    def __init__(self, url: str, name: str, timeout: float | None = None, **options: Any) -> None:
        self.locks: Any = holdfast.connect(url, ttl=TTL)
        self.inherited: list[bool] = []
        self.lease: Any = None
        self.failure: Exception | None = None
        self._lock = self.locks.lock(name, timeout=timeout, **options)
        backend: Any = self.locks._core.backend
        inherit = backend._inherit

        def spy(*words: Any) -> Any:
            grant = yield from inherit(*words)
            self.inherited.append(grant is not None)
            return grant

        backend._inherit = spy
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.lease = self._lock.acquire()
        except Exception as error:  # noqa: BLE001  the test looks at it
            self.failure = error

    def done(self) -> Any:
        self._thread.join(HANG_S)
        assert not self._thread.is_alive()
        return self.lease

    @property
    def node(self) -> str:
        [state] = self.locks._core.backend._states.values()
        return str(state.path)

    @property
    def waits(self) -> bool:
        return self._thread.is_alive()


@pytest.fixture
def stand_in_line(ensemble: Ensemble, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Waiters for one name, who come one after the other."""
    name = request.node.name
    with ExitStack() as stack:
        observer = stack.enter_context(holdfast.connect(ensemble.url, ttl=TTL))

        def come(**options: Any) -> Waiter:
            before = _count(observer, name)
            waiter = Waiter(ensemble.url, name, **options)
            stack.callback(waiter.locks.close)
            until(lambda: _count(observer, name) > before and _settled(waiter))
            return waiter

        yield come


def _count(locks: Any, name: str) -> int:
    return sum(len(view.holders) + len(view.waiters) for view in locks.survey(name) if view.name == name)


def _settled(waiter: Waiter) -> bool:
    """Granted, or its watches are set."""
    states = list(waiter.locks._core.backend._states.values())
    return not waiter.waits or any(state.watching and state.until for state in states)


def until(look: Any) -> None:
    turn = threading.Event()
    for _ in range(int(HANG_S / 0.01)):
        if look():
            return
        turn.wait(0.01)
    raise AssertionError("waited in vain")


def test_each_inherits_from_the_one_before_it(stand_in_line: Any) -> None:
    """But for the first to wait: who was alone when it was granted tells nobody that it lets go."""
    line = [stand_in_line() for _ in range(4)]
    tokens: list[int] = []
    for waiter in line:
        lease = waiter.done()
        assert [other.waits for other in line if other is not waiter and other.lease is None] == [True] * (
            len(line) - len(tokens) - 1
        )
        tokens.append(lease.token)
        assert lease.release()
    assert [waiter.inherited for waiter in line] == [[], [False], [True], [True]]
    assert tokens == sorted(tokens)


def test_whoever_gives_up_makes_nobody_its_heir(stand_in_line: Any) -> None:
    first, holder = stand_in_line(), stand_in_line()
    hasty, patient = stand_in_line(timeout=3.0), stand_in_line()
    assert first.done().release()
    assert hasty.done() is None
    until(lambda: patient.inherited)
    assert patient.inherited == [False], "it was told of the end, and looked"
    assert patient.waits
    assert holder.done().release()
    assert patient.done().release()
    assert patient.inherited == [False, True]


def test_one_whose_node_was_deleted_by_hand_does_not_inherit(stand_in_line: Any, ensemble: Ensemble) -> None:
    """It stands again, at the end; the one behind it does not hold at the same time."""
    from kazoo.client import KazooClient

    holder, robbed, last = stand_in_line(), stand_in_line(), stand_in_line()
    old = robbed.node
    kazoo = KazooClient(ensemble.hosts, timeout=30)
    kazoo.start(20)
    try:
        kazoo.delete(old)
    finally:
        kazoo.stop()
        kazoo.close()
    until(lambda: robbed.node != old)
    assert robbed.waits
    assert last.waits
    assert holder.done().release()
    assert last.done().release()
    assert robbed.done().release()


def test_whoever_clears_something_away_while_it_waits_is_woken_all_the_same(stand_in_line: Any) -> None:
    """A tombstone that is over, say: only its own leaving ends its wait."""
    first, holder, waiter = stand_in_line(), stand_in_line(), stand_in_line()
    assert first.done().release()
    [state] = waiter.locks._core.backend._states.values()
    waiter.locks._wire.call(Batch((Delete(f"{state.parent}/~ghost"),), state), HANG_S)
    assert holder.done().release()
    assert waiter.done().release()
    assert waiter.inherited == [True]


def test_a_hold_that_lingers_leaves_no_heir(stand_in_line: Any) -> None:
    holder, waiter = stand_in_line(hold_at_least=3.0), stand_in_line()
    lease = holder.done()
    ends = lease._hold.since + 3.0
    assert lease.release()
    taken = waiter.done()
    assert taken._hold.since >= ends - 0.1
    assert taken.release()


def test_a_name_that_begins_anew_under_the_same_numbers_is_looked_at(ensemble: Ensemble) -> None:
    """Its parent was removed and made again; somebody holds it, whose number is that of our own last claim."""
    from kazoo.client import KazooClient
    from kazoo.exceptions import NoNodeError

    name = "anew"
    kazoo = KazooClient(ensemble.hosts, timeout=30)
    kazoo.start(20)
    with holdfast.connect(ensemble.url, ttl=TTL) as ours, holdfast.connect(ensemble.url, ttl=TTL) as theirs:
        backend: Any = ours._core.backend
        parent_state = backend._tree.parent_state(name)
        while not (parent_state.steady and parent_state.last[0] >= 2):
            with ours.lock(name):
                pass
        with contextlib.suppress(NoNodeError):  # the server may have been quicker
            kazoo.delete(f"/holdfast/{name}")
        lease = theirs.lock(name).acquire()
        while number_of(theirs) != parent_state.last[0]:
            assert lease.release()
            lease = theirs.lock(name).acquire()
        assert ours.lock(name).try_acquire() is None
        assert lease.release()
    kazoo.stop()
    kazoo.close()


def number_of(locks: Any) -> int:
    [state] = locks._core.backend._states.values()
    return int(state.node[-10:])


@pytest.mark.parametrize(
    ("number", "token", "session", "follows"),
    [
        (8, 102, 5, True),
        (8, 110, 5, True),
        (8, 111, 5, False),
        (9, 102, 5, False),
        (8, 99, 5, False),
        (8, 102, 6, False),
    ],
    ids=["next", "others-elsewhere", "perhaps-anew", "somebody-between", "went-back", "another-session"],
)
def test_who_follows_a_claim_that_was_alone_is_alone(number: int, token: int, session: int, follows: bool) -> None:
    def state(number: int, token: int, session: int = 5) -> ClaimState:
        return ClaimState(
            Claim(LockSpec("x"), "me", "actor"),
            "/h/x",
            9.0,
            session=session,
            node=f"n__lock__{number:010d}",
            token=token,
            alone=True,
        )

    parent_state = ParentState("/h/x", Prepared(List("/h/x")))
    assert not parent_state.follows(state(8, 102))
    parent_state.left(state(7, 100))
    assert parent_state.follows(state(number, token, session)) is follows
    parent_state.alone(state(number, token, session))
    assert parent_state.steady is follows
    assert not parent_state.follows(state(number + 1, token + 1, session)), "it is there still"
