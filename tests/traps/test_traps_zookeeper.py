"""TRAPS 26 to 30: how other locks on ZooKeeper fail, and that this one does not. kazoo is the witness."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
from holdfast._core.flow import Flow
from holdfast.backends.zookeeper.claim_state import ClaimState
from holdfast.backends.zookeeper.ops import CloseSession
from holdfast.backends.zookeeper.paths import prefix_of
from holdfast.backends.zookeeper.session import Session, SessionState, Ticket
from holdfast.errors import BackendUnavailable, LeaseLost, NotAcquired
from holdfast.model import Grant, LockSpec
from holdfast.model import State as Life
from holdfast.testing.context import HANG_S
from tests.zookeeper.ensemble import Ensemble, running


@pytest.fixture(scope="module")
def alone() -> Iterator[Ensemble]:
    with running(members=1) as found:
        yield found


@pytest.fixture
def kazoo(alone: Ensemble) -> Iterator[Any]:
    from kazoo.client import KazooClient

    client = KazooClient(alone.hosts, timeout=30)
    client.start(20)
    yield client
    client.stop()
    client.close()


@pytest.fixture
def locks(alone: Ensemble) -> Iterator[holdfast.Coordinator]:
    with holdfast.connect(alone.url, ttl=20) as found:
        yield found


def until(look: Any, what: str) -> Any:
    """Look until there is something to see."""
    turn = threading.Event()
    for _ in range(int(HANG_S / 0.01)):
        if found := look():
            return found
        turn.wait(0.01)
    raise AssertionError(f"waited in vain for {what}")


def link_of(locks: Any, ttl: float = 20) -> Any:
    return locks._wire._client._links[ttl]


def run(locks: Any, flow: Flow[Any]) -> Any:
    return locks._run(flow)


def end_session_of(link: Any) -> None:
    """Somebody ends it at the server, as its expiry would: over another connection, with its id and password."""
    thief = Session(5)
    thief.id, thief._password = link.session.id, link.session._password
    while thief.state is not SessionState.GONE:  # its owner may snatch it back in between
        ticket = Ticket(1)
        with socket.create_connection((link.servers.current.host, link.servers.current.port), 5) as sock:
            sock.settimeout(0.5)
            sock.sendall(thief.greet())
            try:
                while not ticket.done and (data := sock.recv(4096)):
                    *_, say = thief.receive(data)
                    sock.sendall(say)
                    if thief.state is SessionState.UP and not thief.under_way:
                        sock.sendall(thief.ask([CloseSession()], ticket))
            except OSError:
                pass  # once more
        if ticket.done and ticket.answers[0]:
            return
        thief.drop()


def test_26_a_lost_create_never_adopts_a_node_of_another_session(kazoo: Any, locks: Any) -> None:
    """The owner fits, the session does not: that node is about to vanish, and is no hold of ours."""
    with locks.lock("door"):
        pass
    backend = locks._core.backend
    claim = locks._core.claim(LockSpec("door", ttl=20), "actor")
    link = link_of(locks)
    backend._states[claim.owner] = ClaimState(
        claim, "/holdfast/door", holdfast.clock.now() + 20, tried=True, link=link, session=link.session.id
    )
    kazoo.ensure_path("/holdfast/door")
    foreign = kazoo.create(
        f"/holdfast/door/{prefix_of(claim.owner, kazoo.client_id[0], claim.spec)}", b"", ephemeral=True, sequence=True
    )
    grant = run(locks, backend.take(claim, True))
    assert isinstance(grant, Grant)
    [node] = kazoo.get_children("/holdfast/door")
    stat = kazoo.exists(f"/holdfast/door/{node}")
    assert (stat.ephemeralOwner, stat.czxid) == (link.session.id, grant.token)
    assert not foreign.endswith(node)
    assert run(locks, backend.release(claim))


def test_26_a_lost_create_finds_its_own_node(kazoo: Any, locks: Any) -> None:
    """Owner and session fit: it is the very claim, and nothing is created twice."""
    with locks.lock("door"):
        pass
    backend, link = locks._core.backend, link_of(locks)
    claim = locks._core.claim(LockSpec("door", ttl=20), "actor")
    run(locks, backend.take(claim, True))
    [node] = kazoo.get_children("/holdfast/door")
    backend._states[claim.owner] = ClaimState(  # as if the reply had been lost
        claim, "/holdfast/door", holdfast.clock.now() + 20, tried=True, link=link, session=link.session.id
    )
    grant = run(locks, backend.take(claim, True))
    assert kazoo.get_children("/holdfast/door") == [node]
    assert grant.token == kazoo.exists(f"/holdfast/door/{node}").czxid
    assert run(locks, backend.release(claim))


def test_27_a_failed_clean_up_leaves_no_orphan(alone: Ensemble, kazoo: Any, locks: Any) -> None:
    """Given up while the server hangs: the place in the line is gone soon after it is back, with the session alive."""
    holder = locks.lock("door").acquire()
    [mine] = kazoo.get_children("/holdfast/door")
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            locks.lock("door").acquire(timeout=1.0)
        except (NotAcquired, BackendUnavailable) as error:
            errors.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    until(lambda: len(kazoo.get_children("/holdfast/door")) == 2, "the waiter")
    alone.members[0].pause()
    try:
        waiter.join(HANG_S)
    finally:
        alone.members[0].resume()
    assert len(errors) == 1
    until(lambda: kazoo.get_children("/holdfast/door") == [mine], "the orphan to be gone")
    assert link_of(locks).session.state is SessionState.UP
    holder.check()
    assert holder.release()


def test_28_a_session_that_died_is_a_lease_that_is_lost(locks: Any) -> None:
    """With the reason, for all that it carried; and the next lock has a session of its own."""
    leases = [locks.lock(name).acquire() for name in ("a", "b")]
    link = link_of(locks)
    end_session_of(link)
    for lease in leases:
        until(lambda lease=lease: _over(lease), "the loss")
        assert (lease.state, lease.reason) == (Life.LOST, "session")
        assert lease.lost.is_set()
        assert lease.release() is False
    with locks.lock("a", timeout=5) as again:
        assert again.token > leases[0].token
    assert link_of(locks) is not link


def _over(lease: Any) -> bool:
    """Renewing by hand tells it at once; the keeper would with its next renewal."""
    try:
        lease.renew()
    except LeaseLost:
        return True
    except BackendUnavailable:
        return False
    return False


def test_28_a_waiter_whose_session_died_stands_again(locks: Any, alone: Ensemble) -> None:
    with holdfast.connect(alone.url, ttl=20) as other:
        holder = other.lock("door").acquire()
        said: list[Any] = []
        waiter = threading.Thread(target=lambda: said.append(locks.lock("door").acquire()))
        waiter.start()
        until(lambda: [v for v in other.survey("door") if v.waiters], "the waiter")
        old = link_of(locks)
        end_session_of(old)
        until(lambda: link_of(locks) is not old and link_of(locks).up is not None, "a new session")
        until(lambda: [v for v in other.survey("door") if v.waiters], "the waiter, again")
        assert not said
        assert holder.release()
        waiter.join(HANG_S)
        assert said[0].release()


def test_28_a_wake_up_during_a_disconnection_is_not_lost(locks: Any, alone: Ensemble) -> None:
    """The watch is told to the server again, and the waiter looks."""
    with holdfast.connect(alone.url, ttl=20) as other:
        holder = other.lock("door").acquire()
        said: list[Any] = []
        waiter = threading.Thread(target=lambda: said.append(locks.lock("door").acquire()))
        waiter.start()
        until(lambda: [v for v in other.survey("door") if v.waiters], "the waiter")
        link = link_of(locks)
        session = link.session.id
        link.drop(link.up, ConnectionError("planted"))
        assert holder.release()
        waiter.join(HANG_S)
        assert said[0].release()
        assert link.session.id == session


def test_29_the_token_is_not_the_czxid_of_the_parent(kazoo: Any, locks: Any) -> None:
    """They are made together, so they are the same for the first claim; and not for the next one."""
    with locks.semaphore("pool", permits=2) as first, locks.semaphore("pool", permits=2) as second:
        nodes = [kazoo.exists(f"/holdfast/pool/{node}").czxid for node in kazoo.get_children("/holdfast/pool")]
        assert sorted(nodes) == [first.token, second.token]
        assert kazoo.exists("/holdfast/pool").czxid == first.token < second.token


def test_29_the_token_is_the_czxid_of_the_claims_own_node(kazoo: Any, locks: Any) -> None:
    """Not the parent's, not the mzxid, not the number: over the end of the parent it grows, and the number does not."""
    with locks.lock("gone") as lease:
        [node] = kazoo.get_children("/holdfast/gone")
        until(lambda: kazoo.exists(f"/holdfast/gone/{node}").version, "the confirmation")
        stat = kazoo.exists(f"/holdfast/gone/{node}")
        assert lease.token == stat.czxid
        assert lease.token not in (stat.mzxid, int(node[-10:]))
        before = lease.token
        assert locks.check(lease.sequencer()), "a write to the node's data changes nothing about the grant"
    until(lambda: kazoo.exists("/holdfast/gone") is None, "the server to remove the empty parent")
    with locks.lock("gone") as lease:
        [again] = kazoo.get_children("/holdfast/gone")
        assert int(again[-10:]) <= int(node[-10:])
        assert lease.token > before


def test_30_writing_to_the_holders_node_wakes_nobody(kazoo: Any, locks: Any, alone: Ensemble) -> None:
    """Neither its confirmation nor that it is asked to give way: the waiter sends nothing."""
    with holdfast.connect(alone.url, ttl=60) as other:
        holder = locks.lock("quiet").acquire()
        said: list[Any] = []
        waiter = threading.Thread(target=lambda: said.append(other.lock("quiet").acquire()))
        waiter.start()
        until(lambda: [v for v in locks.survey("quiet") if v.waiters], "the waiter")
        node = next(n for n in kazoo.get_children("/holdfast/quiet") if n.startswith(holder.owner))
        link = link_of(other, 60)
        until(lambda: link.session.on_data | link.session.on_end, "its watch")
        sent = link.session._xid
        until(lambda: kazoo.exists(f"/holdfast/quiet/{node}").version == 1, "the confirmation")
        assert locks.ask("quiet") == 1
        assert kazoo.exists(f"/holdfast/quiet/{node}").version == 2
        kazoo.sync("/holdfast")
        assert link.session._xid == sent
        assert f"/holdfast/quiet/{node}" in link.session.on_data | link.session.on_end
        holder.renew()
        until(lambda: _renewed_and_asked(holder), "that it was asked")
        assert holder.release()
        waiter.join(HANG_S)
        assert said[0].release()


def _renewed_and_asked(lease: Any) -> bool:
    lease.renew()
    return bool(lease.asked.is_set())
