"""The traps of every engine (TRAPS 1 to 13), by name.

A trap is a promise that another library breaks; `NAMED` says which promise of the contract forbids it, so the trap
can be found here and the promise is written once. Trap 12 is in `test_traps_cli.py`.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import holdfast
from holdfast.backends.execute import Moment
from holdfast.backends.memory.store import TIDY_EVERY_COUNT, MemoryStore
from holdfast.backends.queue_backend import Release, Take
from holdfast.model import Claim, LockSpec
from holdfast.testing import contract_promises, memory_engine_under_test, run_promise

PROMISES = {promise.name: promise for promise in contract_promises()}
NAMED = {
    "01_body_never_runs_without_the_lock": ["mutual_exclusion.a_body_never_runs_without_the_lock"],
    "02_validity_counts_from_the_send": ["expiry.the_holder_knows_before_the_successor_begins"],
    "02_loss_is_noticed_between_renewals": ["loss_is_told.while_a_renewal_hangs"],
    "03_one_fault_does_not_end_renewal": ["renewal.a_fault_that_passes_is_borne"],
    "03_a_thousand_leases_share_few_requests": ["renewal.many_leases_share_few_requests"],
    "04_an_owner_is_one_acquisition": ["only_the_owner.actors_of_one_coordinator_are_different_owners"],
    "05_timeout_does_not_start_over_on_a_wake": ["try_and_timeout.it_does_not_start_over_on_a_wake"],
    "06_tokens_outlive_the_lock": ["tokens_grow.over_the_end_of_everybody", "tokens_grow.over_expiry"],
    "08_renewal_ends_with_max_hold": ["max_hold.it_ends_with_a_reason", "max_hold.no_renewal_moves_it"],
    "09_the_result_of_a_release_is_told": ["only_the_owner.a_second_release_does_nothing"],
    "10_crossed_orders_do_not_lock_up": ["lock_all.crossed_orders_do_not_lock_up"],
    "10_one_timeout_for_all_names": ["lock_all.one_timeout_for_the_whole"],
    "11_a_leader_stops_before_the_next_one_starts": ["election.a_leader_stops_before_the_next_one_starts"],
    "13_a_forked_child_holds_nothing": ["fork.the_child_holds_nothing"],
}


@pytest.mark.parametrize("trap", NAMED)
def test_trap(trap: str) -> None:
    """On the reference engine, in virtual time; `tests/contract` runs the same promises on every engine."""
    for name in NAMED[trap]:
        run_promise(PROMISES[name], memory_engine_under_test(), "asyncio")


def test_07_no_counter_stays_for_ever() -> None:
    """A mark that calendar time has long passed is forgotten: names that were used once leave nothing."""
    store, day = MemoryStore(), 24 * 3600 * 1_000_000
    for number in range(TIDY_EVERY_COUNT):
        claim = Claim(LockSpec(f"order/{number}"), f"o{number}", "a")
        store.carry_out(Take((claim,), queue=False), Moment(number, number))
        store.carry_out(Release(claim, 0.0), Moment(number, number))
    assert len(store.marks) > TIDY_EVERY_COUNT / 4
    claim = Claim(LockSpec("other"), "o", "a")
    for number in range(TIDY_EVERY_COUNT):
        store.carry_out(Take((claim,), queue=False), Moment(number, 3 * day + number))
    assert len(store.marks) < 10


HAND_OVER = ("sync/base_coordinator.py", "aio/base_coordinator.py")
"""What they do when they are collected is done by a thread or by their loop; they themselves send nothing."""

CLOSE_THEIR_OWN = ("sync/events.py",)
"""They close a pair of sockets that nobody else has, and that leads to no engine."""

ONLY_COUNT = ("backends/redis/connection.py",)
"""A connection that an interruption has dropped is taken out of its pool's count."""


def test_09_nothing_is_sent_when_an_object_is_collected() -> None:
    package = Path(holdfast.__file__).parent
    for file in package.rglob("*.py"):
        names = {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)}
        assert (
            "__del__" not in names or file.relative_to(package).as_posix() in HAND_OVER + CLOSE_THEIR_OWN + ONLY_COUNT
        ), file
