"""The programs at the server do what the reference does: any requests, of any recipe, in any order."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.backends.queue_backend import Release, Survey, Take
from holdfast.model import Claim, LockSpec
from tests.redis.reference import OWNERS, START, SameAsTheReference, ServerStore
from tests.support.redis_server import RedisServer


def test_same_replies_as_the_reference(machine: type[SameAsTheReference]) -> None:
    effort = settings(
        max_examples=150,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    run_state_machine_as_test(machine, settings=effort)


def test_who_died_waiting_is_passed_over(server: RedisServer) -> None:
    """The first waiter is silent for longer than its patience; the second gets the lock, in the same step."""
    ours = ServerStore(server)
    claims = [Claim(LockSpec("a"), owner, "actor") for owner in OWNERS]
    [held] = ours.carry_out(Take(claims[:1], True), START)
    ours.carry_out(Take(claims[1:2], True), START + 1)
    ours.carry_out(Take(claims[2:3], True), START + 9_000_000)
    assert ours.carry_out(Release(claims[0], 0.0), START + 11_000_000)
    [view] = ours.carry_out(Survey("a"), START + 11_000_001)
    assert [holder.owner for holder in view.holders] == [OWNERS[2]]
    assert view.holders[0].token > held.token
    assert not view.waiters
    ours.client.close()
