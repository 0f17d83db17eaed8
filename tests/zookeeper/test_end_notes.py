"""What ZooKeeper remembers of a hold that did not end cleanly: where it stands, until when, what it costs others."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast.backends.zookeeper import claim_tracker, tombstones
from holdfast.backends.zookeeper.ops import Delete, List
from holdfast.backends.zookeeper.requests import Batch, child_nodes
from holdfast.model import Predecessor
from tests.zookeeper.ensemble import Ensemble

TTL = 30.0


def put_right(lease: holdfast.Lease, predecessor: Predecessor) -> None:
    """Nothing is to be done."""


def fail(lease: holdfast.Lease, predecessor: Predecessor) -> None:
    raise ZeroDivisionError


def listed(locks: Any, path: str) -> list[str]:
    [answer] = locks._wire.call(Batch((List(path),)), 5.0)
    return child_nodes(answer)


def notes(locks: Any, namespace: str, name: str) -> list[str]:
    return [node for node in listed(locks, f"/{namespace}/{name}") if node.startswith("~last.")]


def delete_claims(locks: Any, namespace: str, name: str) -> None:
    """As if the session of all who claim this name had ended."""
    for node in listed(locks, f"/{namespace}/{name}"):
        if not node.startswith("~"):
            assert locks._wire.call(Batch((Delete(f"/{namespace}/{name}/{node}"),)), 5.0) == [True]


def unrecovered(locks: holdfast.Coordinator, name: str) -> Predecessor | None:
    return next((view.unrecovered for view in locks.survey(name) if view.name == name), None)


def await_true(look: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 30
    while not look():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


def sent(locks: Any) -> int:
    return sum(link.session._xid for link in locks._wire._client._links.values())


def test_a_clean_pair_leaves_nothing(ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_tracker, "CONFIRM_AFTER_S", 100.0)  # what is done beside it is not counted
    monkeypatch.setattr(tombstones.Tombstones, "due", lambda self, spec: False)
    with holdfast.connect(ensemble.url, namespace="clean", ttl=TTL) as locks:
        with locks.lock("warm"):
            pass
        for name, recover, count in (("plain", None, 0), ("robust", put_right, 1)):
            before = sent(locks)
            with locks.lock(name, recover=recover):
                requests = sent(locks) - before
                assert len(notes(locks, "clean", name)) == count  # without, it costs nothing
            assert requests == 1 + count
        assert [step for step in listed(locks, "/clean") if not step.startswith("%")] == []


def test_whose_claim_is_gone_is_named_until_things_are_put_right(ensemble: Ensemble) -> None:
    with (
        holdfast.connect(ensemble.url, namespace="gone", ttl=TTL) as locks,
        holdfast.connect(ensemble.url, namespace="gone", ttl=TTL) as other,
    ):
        first = locks.lock("door", recover=put_right).acquire()
        assert unrecovered(other, "door") is None
        delete_claims(other, "gone", "door")
        left = Predecessor(first.token, first.owner, "session")
        assert unrecovered(other, "door") == left
        with other.lock("door") as plain:
            assert plain.predecessor == left
        with pytest.raises(ZeroDivisionError):
            other.lock("door", recover=fail).acquire()
        assert unrecovered(other, "door") == left
        with other.lock("door", recover=put_right) as lease:
            assert lease.predecessor == left
            assert unrecovered(other, "door") is None
        assert notes(other, "gone", "door") == []
        first.release()


def test_each_end_is_remembered_until_all_is_put_right(ensemble: Ensemble) -> None:
    with (
        holdfast.connect(ensemble.url, namespace="ends", ttl=TTL) as locks,
        holdfast.connect(ensemble.url, namespace="ends", ttl=TTL) as operator,
    ):
        tokens: list[int] = []
        for _ in range(3):
            lease = (locks.lock("door") if tokens else locks.lock("door", recover=put_right)).acquire()
            tokens.append(lease.token)
            assert operator.evict("door", lease.token)
            lease.release()
        last = unrecovered(operator, "door")
        assert last is not None
        assert (last.token, last.ended) == (tokens[-1], "evicted")
        assert len(notes(operator, "ends", "door")) == len(tokens)
        with locks.lock("door", recover=put_right) as lease:
            assert lease.predecessor == last
        assert notes(operator, "ends", "door") == []


def test_what_nobody_came_for_is_removed_when_it_is_old(ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whoever comes by; but not what is to be put right."""
    with (
        holdfast.connect(ensemble.url, namespace="old", ttl=TTL) as locks,
        holdfast.connect(ensemble.url, namespace="old", ttl=TTL) as other,
    ):
        for name, recover in (("fades", None), ("stays", put_right)):
            lease = locks.lock(name, recover=recover).acquire()
            assert other.evict(name, lease.token)
            lease.release()
            assert len(notes(other, "old", name)) == 1
        monkeypatch.setattr(tombstones, "REMEMBERED_S", 0.0)
        with other.lock("another", renew=False):
            await_true(lambda: notes(other, "old", "fades") == [], "the sweep")
        assert len(notes(other, "old", "stays")) == 1
