"""Bugs around it: closing, forking, decorators, events, bad input, namespaces."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from holdfast._core import acquire, coordinator_core, withdraw
from holdfast.aio import base_coordinator
from holdfast.aio import coordinator as aio
from holdfast.aio import lock as aio_lock
from holdfast.errors import Misconfigured
from holdfast.model import Claim, LockSpec
from holdfast.recipes import limiter
from holdfast.testing import EngineUnderTest, memory_engine_under_test
from tests.contract.plants.plant import plant


@plant("close.what_it_held_is_free", "close.what_it_waited_for_is_given_up", "close.a_body_inside_is_told")
def closing_closes_nothing(patch: pytest.MonkeyPatch) -> None:
    async def close(self: Any) -> None:
        self._closed = True

    patch.setattr(aio.Coordinator, "close", close)


@plant("close.those_who_wait_are_told_at_once")
def who_waits_is_not_withdrawn(patch: pytest.MonkeyPatch) -> None:
    real = withdraw.release_each
    patch.setattr(coordinator_core, "release_each", lambda backend, claims, patience: real(backend, [], patience))


@plant("close.what_is_granted_meanwhile_is_held_by_nobody")
def what_is_granted_while_closing_is_kept(patch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any, holds: Any) -> Any:
        return
        yield

    patch.setattr(coordinator_core.CoordinatorCore, "refuse", refuse)


@plant(
    "close.an_engine_that_does_not_answer_is_waited_for_once",
    "lock_all.an_engine_that_does_not_answer_is_waited_for_once",
)
def every_claim_waits_for_its_own_timeout(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(withdraw.Patience, "exhausted", False)


@plant("close.a_task_that_was_cancelled_stays_so")
def closing_hides_a_cancellation(patch: pytest.MonkeyPatch) -> None:
    def withdraw_all(*args: Any) -> Any:
        yield from real(*args)
        raise Misconfigured("closed")

    real = withdraw.withdraw_all
    patch.setattr(acquire, "withdraw_all", withdraw_all)


@plant("close.afterwards_it_says_so")
def closed_is_not_said(patch: pytest.MonkeyPatch) -> None:
    async def close(self: Any) -> None:
        pass

    patch.setattr(aio.Coordinator, "close", close)


@plant(
    "fork.the_child_holds_nothing",
    "fork.the_end_of_the_child_is_not_the_end_of_the_hold",
    "fork.the_child_of_a_fork_that_told_nobody_holds_nothing",
)
def a_fork_goes_unnoticed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aio.Coordinator, "_after_fork_in_child", lambda self: None)


@plant("fork.the_parent_goes_on", "fork.the_child_holds_nothing")
def a_fork_hits_the_parent(patch: pytest.MonkeyPatch) -> None:
    real = aio.Coordinator._after_fork_in_parent

    def after_fork_in_parent(self: Any) -> None:
        real(self)
        self._engine.store.lines.clear()

    patch.setattr(aio.Coordinator, "_after_fork_in_parent", after_fork_in_parent)


@plant("decorators.each_recipe_holds_for_the_call", "decorators.calls_exclude_each_other")
def decorators_do_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aio_lock.Lock, "__call__", lambda self, function: function)


@plant("sharing.a_handle_may_be_nested")
def a_handle_lets_go_of_the_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aio_lock, "leave_last", lambda entered, frame, me: entered[frame].pop(0)[1])


@plant("events.the_steps_of_a_life", "events.a_loss_with_its_reason")
def no_events(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(base_coordinator, "guarded", lambda emit: lambda event: None)


@plant("events.a_listener_that_raises_harms_nobody", slips=True)
def listeners_are_not_guarded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(base_coordinator, "guarded", lambda emit: emit)


@plant("bad_input.names", slips=True)
def any_name_will_do(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("holdfast.model.check_name", lambda name, what="name": name)


@plant("bad_input.options", "bad_input.counts", slips=True)
def any_option_will_do(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LockSpec, "__post_init__", lambda self: None)


@plant("bad_input.what_is_not_an_option_of_a_call", "try_and_timeout.from_the_call_the_recipe_or_the_coordinator")
def options_of_a_call_are_dropped(patch: pytest.MonkeyPatch) -> None:
    real = aio_lock.Lock.acquire
    patch.setattr(aio_lock.Lock, "acquire", lambda self, **options: real(self))


@plant("bad_input.a_ttl_that_the_engine_can_not_keep", slips=True)
def any_ttl_will_do(patch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count(1)
    patch.setattr(
        coordinator_core.CoordinatorCore, "claim", lambda self, spec, actor: Claim(spec, f"o{next(numbers)}", actor)
    )


@plant("bad_input.several_names", slips=True)
def any_names_will_do(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aio, "canonical", lambda names: [str(name) for name in names] if isinstance(names, list) else ["x"])


@plant("bad_input.rates", slips=True)
def any_rate_will_do(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(limiter.Rate, "parse", classmethod(lambda cls, name, rate, burst: cls(name, 1.0, 1)))


def one_engine_for_all() -> EngineUnderTest:
    under_test = memory_engine_under_test()
    return replace(under_test, open=lambda url, namespace, timeout: under_test.open(url, "shared", timeout))


@plant(
    "namespaces.one_is_not_the_prefix_of_another",
    "namespaces.names_in_two_of_them_are_two_names",
    under_test=one_engine_for_all,
)
def namespaces_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """By the engine itself."""


@plant("events.a_fault_with_its_reason")
def faults_are_not_told(patch: pytest.MonkeyPatch) -> None:
    real = coordinator_core.CoordinatorCore.observe

    def observe(self: coordinator_core.CoordinatorCore, hold: Any, kind: str, held: float) -> None:
        if kind != "jeopardy":
            real(self, hold, kind, held)

    patch.setattr(coordinator_core.CoordinatorCore, "observe", observe)
