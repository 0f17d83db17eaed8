"""How session locks keep the contract, on either engine: as far as a session can.

The server frees a session lock with its session and at no other time. What follows from that is told in the engine's
`promises`; each promise that it does not make is played as what happens instead, so that no cell is skipped.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast import Coordinator
from holdfast.errors import Misconfigured
from holdfast.model import State
from holdfast.testing import Body, Promise, Venue, contract_promises, play


def mutexes_only(locks: Coordinator, other: Coordinator) -> None:
    with pytest.raises(Misconfigured, match="mutexes"):
        locks.semaphore("pool", permits=2).acquire()
    with pytest.raises(Misconfigured, match="mutexes"):
        locks.rwlock("doc").read().acquire()


def nobody_is_evicted(locks: Coordinator, other: Coordinator) -> None:
    with locks.lock("door") as lease:
        with pytest.raises(Misconfigured, match="cannot evict"):
            other.evict("door", lease.token)
        lease.check()


def nothing_lingers(locks: Coordinator, other: Coordinator) -> None:
    for lock in (locks.lock("door", lock_delay=1), locks.lock("door", hold_at_least=1)):
        with pytest.raises(Misconfigured, match="can not be kept"):
            lock.acquire()
    with other.lock("door", timeout=0):
        pass


def silence_frees_nothing(locks: Coordinator, other: Coordinator) -> None:
    lease = locks.lock("door", ttl=0.1, renew=False).acquire()
    assert lease.lost.wait(120)
    assert (lease.state, lease.reason) == (State.LOST, "expired")
    assert other.lock("door").try_acquire() is None, "its holder is told to stop; the others wait until it does"
    lease.release()
    with other.lock("door", timeout=0) as next_one:
        assert next_one.token > lease.token


def order_among_coordinators(locks: Coordinator, other: Coordinator) -> None:
    with locks.lock("door"):
        assert other.lock("door").try_acquire() is None
    with other.lock("door", timeout=0):
        pass


INSTEAD: dict[str, Callable[[Coordinator, Coordinator], None]] = {
    "shared": mutexes_only,
    "evict": nobody_is_evicted,
    "linger": nothing_lingers,
    "ttl": silence_frees_nothing,
    "order": order_among_coordinators,
}

NOT_KEPT = {
    **dict.fromkeys(("bad_input.names", "bad_input.options", "bad_input.counts"), "shared"),
    **dict.fromkeys(("cancellation.of_a_permit", "deadlock.an_upgrade"), "shared"),
    **dict.fromkeys((p.name for p in contract_promises() if p.name.startswith("evict.")), "evict"),
    **dict.fromkeys(
        (
            "election.run_campaigns_again_after_a_loss",
            "lock_all.they_fall_together",
            "loss_is_told.an_eviction_is_called_one",
            "lost_reply.of_looking_and_evicting",
            "lost_wakeup.evicted_before_it_looked",
            "namespaces.names_in_two_of_them_are_two_names",
            "sequencer.not_after_an_expiry_or_an_eviction",
            "tokens_grow.over_release_and_eviction",
        ),
        "evict",
    ),
    **dict.fromkeys(
        (p.name for p in contract_promises() if p.name.startswith(("hold_at_least.", "lock_delay."))), "linger"
    ),
    "crash.of_a_holder_with_a_delay": "linger",
    **dict.fromkeys((p.name for p in contract_promises() if p.name.startswith("expiry.")), "ttl"),
    **dict.fromkeys(
        (
            "crash.of_a_holder",
            "election.a_leader_stops_before_the_next_one_starts",
            "max_hold.no_renewal_moves_it",
            "only_the_owner.a_stale_release_frees_nobody",
            "only_the_owner.a_stale_renewal_brings_nothing_back",
            "reentrant.taken_anew_it_is_a_new_grant",
            "survey.only_the_living",
            "tokens_grow.over_expiry",
            "bad_network.a_short_outage_costs_nothing",
            "bad_network.nobody_else_holds_before_it_is_told",
            "idle_network.what_is_held_stays_held",
        ),
        "ttl",
    ),
    **dict.fromkeys(("fifo_order.in_order_of_arrival", "lost_wakeup.the_line_behind_it_moves_on"), "order"),
}
"""Promises that a session does not make, or that are played with recipes it refuses, and the note that says so."""

NOT_KEPT_FOR_THREADS = dict.fromkeys(("cancellation.that_comes_twice", "cancellation.of_several_names"), "ttl")
"""Interrupted while it lets go, a thread leaves the lock behind: elsewhere until its ttl, here until it closes."""


def play_for_sessions(promise: Promise, venue: Venue, body: Body, pair: tuple[Coordinator, Coordinator]) -> None:
    """The promise itself, or what happens instead, and the note that says so."""
    not_kept = NOT_KEPT if body == "asyncio" else NOT_KEPT | NOT_KEPT_FOR_THREADS
    note = not_kept.get(promise.name)
    if note is None:
        play(promise, venue, body)
    else:
        assert pair[0].promises.notes[note]
        INSTEAD[note](*pair)
