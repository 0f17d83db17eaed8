"""How many requests a lock costs: counted at the session, without signs of life (the ttl is long).

Holds are short here, and are not confirmed: that is two more requests, for a hold that lasts.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest

import holdfast
from holdfast.backends.zookeeper import claim_tracker
from tests.zookeeper.ensemble import Ensemble

TTL = 60.0


def sent(locks: Any) -> int:
    return sum(link.session._xid for link in locks._wire._client._links.values())


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow this machine is, no hold counts as lasting."""
    monkeypatch.setattr(claim_tracker, "CONFIRM_AFTER_S", 100.0)


@pytest.mark.usefixtures("brief")
def test_an_uncontended_pair_is_two_requests(ensemble: Ensemble) -> None:
    """Create and list together, then one deletion; and no listing once nobody else has come for a while."""
    with holdfast.connect(ensemble.url, ttl=TTL) as locks:
        for _ in range(2):  # its container is made and deleted in the same requests; the second time it stays
            before = sent(locks)
            with locks.lock("pair"):
                assert sent(locks) - before == 1
            assert sent(locks) - before == 2
        before = sent(locks)
        with locks.lock("pair"):
            assert sent(locks) - before == 2
        assert sent(locks) - before == 3
        spent = []
        for _ in range(10):  # the server may remove the empty container in between
            before = sent(locks)
            with locks.lock("pair"):
                pass
            spent.append(sent(locks) - before)
        assert min(spent) == 2


@pytest.mark.usefixtures("brief")
def test_several_names_are_entered_in_one_request(ensemble: Ensemble) -> None:
    with holdfast.connect(ensemble.url, ttl=TTL) as locks:
        several = locks.lock_all(["x", "y", "z"])
        with several:
            pass
        before = sent(locks)
        with several:
            assert sent(locks) - before == 7  # one entrance, three listings, three tokens read


@pytest.mark.usefixtures("brief")
def test_a_contended_acquisition_is_four(ensemble: Ensemble) -> None:
    """Create, list, watch, delete; and each release wakes one waiter, which seldom has to look."""
    threads, rounds = 8, 6
    coordinators = [holdfast.connect(ensemble.url, ttl=TTL) for _ in range(threads)]
    for locks in coordinators:
        with locks.lock("crowd"):
            pass
    before = [sent(locks) for locks in coordinators]

    def work(locks: Any) -> None:
        for _ in range(rounds):
            with locks.lock("crowd"):
                pass

    workers = [threading.Thread(target=work, args=(locks,)) for locks in coordinators]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    spent = sum(sent(locks) for locks in coordinators) - sum(before)
    for locks in coordinators:
        locks.close()
    assert spent / (threads * rounds) <= 4.5


def test_ten_thousand_holds_are_renewed_with_few_requests(ensemble: Ensemble) -> None:
    """A renewal asks the leader once, whatever it renews. (A thousand here: the arithmetic is the same.)"""
    count = 1000
    with holdfast.connect(ensemble.url, ttl=TTL) as locks:
        leases = [locks.lock(f"many/{number}").acquire() for number in range(count)]
        backend: Any = locks._core.backend
        claims = locks._wire._client._links[TTL].claims  # type: ignore[attr-defined]
        done = threading.Event()
        while sum(state.confirmed for state in list(claims.own.values())) < count:  # sent for, and answered
            done.wait(0.01)
        before = sent(locks)
        said = locks._run(backend.renew([lease._hold.granted() for lease in leases]))
        assert len(said) == count
        assert all(extension.ttl > 0.9 * TTL for extension in said)
        assert sent(locks) - before <= 2
        for lease in leases:
            assert lease.release()
