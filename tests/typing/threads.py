"""What a type checker must see in a user's program with threads. Checked by `make check`, never run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import assert_type

import holdfast
from holdfast import ClaimView, Coordinator, Event, Lease, LockView, MemberView, Promises, Sequencer, State


def connecting(seen: Callable[[Event], None]) -> None:
    assert_type(holdfast.connect(), Coordinator)
    assert_type(holdfast.connect("sqlite:///locks.db", namespace="shop", ttl=10, timeout=None), Coordinator)
    assert_type(holdfast.connect(require={"fencing", "durable"}, request_timeout=1.5, on_event=seen), Coordinator)
    with holdfast.connect() as locks:
        assert_type(locks, Coordinator)


def asking(locks: Coordinator) -> None:
    lock = locks.lock(
        "a", ttl=10, timeout=5, max_hold=60, lock_delay=1, hold_at_least=1, fair=False, margin=2, renew=False
    )
    assert_type(lock.acquire(), Lease)
    assert_type(lock.acquire(timeout=None, ttl=3), Lease)
    assert_type(lock.try_acquire(), Lease | None)
    with lock as lease:
        assert_type(lease, Lease)
    with lock.acquire() as lease:
        assert_type(lease, Lease)


def every_recipe_gives_a_lease(locks: Coordinator, told: Callable[[Lease], None]) -> None:
    assert_type(locks.reentrant("a", on_lost=told).acquire(), Lease)
    assert_type(locks.rwlock("a").read().acquire(), Lease)
    assert_type(locks.rwlock("a").write().try_acquire(), Lease | None)
    assert_type(locks.semaphore("a", permits=3).acquire(), Lease)
    with locks.lock_all(["a", "b"], timeout=5) as leases:
        assert_type(leases["a"], Lease)
        assert_type(leases.tokens, dict[str, int])
        as_mapping: Mapping[str, Lease] = leases
        assert as_mapping


def electing(locks: Coordinator) -> None:
    election = locks.election("scheduler")
    assert_type(election.campaign(timeout=5), Lease)
    assert_type(election.leader(), ClaimView | None)
    assert_type(election.observe(), Iterator[ClaimView | None])
    assert_type(election.resign(), bool)
    assert_type(election.run(lambda lease: lease.token), int)


def partitioning(locks: Coordinator) -> None:
    with locks.partitions("ingest", shards=64, weight=2, moves="5/s", on_assigned=lambda shard, lease: None) as owned:
        assert_type(owned.shard("key"), int)
        assert_type(owned.owner("key"), ClaimView | None)
        assert_type(owned.members(), tuple[MemberView, ...])
        assert_type(owned.wait_for_change(timeout=1), frozenset[int])
        assert_type(list(owned), list[int])
        assert_type(owned[3], Lease)
        with owned.using(3) as lease:
            assert_type(lease, Lease)
    owned.run()


def acting(locks: Coordinator) -> None:
    def handle(actor: holdfast.Actor, message: int) -> int:
        assert_type(actor.lease, Lease)
        return message

    with locks.actors("accounts", handle, concurrency=4) as accounts:
        assert_type(accounts.tell("alice", 1, message_id="a"), str)
        accounts.ask("alice", 1, timeout=5)
        assert_type(accounts.look("alice"), holdfast.ActorView | None)
        assert_type(accounts.dead_letters(), list[holdfast.DeadLetter])
        assert_type(accounts.retry("alice", "a"), bool)


def limiting(locks: Coordinator) -> None:
    limiter = locks.limiter("mail", "5/s", burst=10)
    assert_type(limiter.try_acquire(), bool)
    limiter.acquire(timeout=1)


def holding(lease: Lease) -> None:
    assert_type(lease.name, str)
    assert_type(lease.token, int)
    assert_type(lease.owner, str)
    assert_type(lease.remaining(), float)
    assert_type(lease.state, State)
    assert_type(lease.lost, threading.Event)
    assert_type(lease.reason, str | None)
    assert_type(lease.release(), bool)
    assert_type(lease.sequencer(), Sequencer)
    lease.check()
    lease.renew()


def looking_after_them(locks: Coordinator, lease: Lease) -> None:
    for view in locks.survey("orders/"):
        assert_type(view, LockView)
        assert_type(view.holders, tuple[ClaimView, ...])
        assert_type(view.holders[0].token, int | None)
    assert_type(locks.evict("a", 7), bool)
    assert_type(locks.check(lease.sequencer()), bool)
    assert_type(locks.promises, Promises)


def decorating_keeps_the_signature(locks: Coordinator) -> None:
    @locks.lock("nightly")
    def nightly(day: str, *, dry: bool = False) -> int:
        return len(day) * (not dry)

    assert_type(nightly("monday", dry=True), int)
    nightly(day=1)  # type: ignore[arg-type]
    nightly("monday", wet=True)  # type: ignore[call-arg]

    @locks.limiter("mail", "5/s")
    def mail(to: str) -> bool:
        return bool(to)

    assert_type(mail("you"), bool)


def misuse_is_seen(locks: Coordinator) -> None:
    # With warn_unused_ignores each line fails the check as soon as it is accepted.
    locks.lock(7)  # type: ignore[arg-type]
    locks.lock("a", ttl="10")  # type: ignore[arg-type]
    locks.lock("a", time_out=5)  # type: ignore[call-arg]
    locks.semaphore("a")  # type: ignore[call-arg]
    locks.lock("a").acquire(time_out=5)  # type: ignore[call-arg]
    holdfast.connect("memory://", "shop")  # type: ignore[call-arg]
    _ = locks.lock("a").try_acquire().token  # type: ignore[union-attr]
