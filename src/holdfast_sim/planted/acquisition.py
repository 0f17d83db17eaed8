"""Bugs of a client in acquire, wait, withdraw and release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast._core import acquire, coordinator_core, withdraw
from holdfast._core.flow import NOW, Flow, Shield, Sleep
from holdfast._core.lease import Hold
from holdfast._core.line import Line
from holdfast.backends.queue_backend import QueueBackend
from holdfast.model import Claim, Grant, Queued
from holdfast.ports import AnyBackend
from holdfast.recipes import limiter, multi

from .. import driver, workload
from .registry import Patch, bug


@bug("nothing is left behind")
def no_drain(patch: Patch) -> None:
    """A cancellation is delivered at once, and the reply in flight is dropped (14)."""

    def cancel(task: driver.Task) -> None:
        task.calling = False
        drained(task)

    drained = driver.Task.cancel
    patch(driver.Task, "cancel", cancel)


@bug("nothing is left behind")
def no_withdrawal(patch: Patch) -> None:
    """A waiter that gives up leaves its claim in the line (14, 35)."""
    patch(acquire, "rollback", _nothing)
    patch(multi, "rollback", _nothing)


@bug("nothing is left behind")
def let_go_all_not_shielded(patch: Patch) -> None:
    """A cancellation between two releases keeps the rest held, and renewed."""

    def let_go_all(core: coordinator_core.CoordinatorCore, holds: Sequence[Hold]) -> Flow[bool]:
        held = True
        for hold in reversed(holds):
            held = (yield from core.let_go(hold)) and held
        return held

    patch(workload, "let_go_all", let_go_all)


@bug("leases stay within capacity")
def released_before_it_is_over(patch: Patch) -> None:
    """The release is sent first, and the lease ends with the reply."""

    def let_go(self: coordinator_core.CoordinatorCore, hold: Hold, *patience: Any) -> Flow[bool]:
        if hold.depth == 1:
            yield Shield(withdraw.withdraw(self.backend, hold.claim))
        return (yield from honest(self, hold, *patience))

    honest = coordinator_core.CoordinatorCore.let_go
    patch(coordinator_core.CoordinatorCore, "let_go", let_go)


@bug("hold_at_least is kept")
def hold_at_least_forgotten_on_retry(patch: Patch) -> None:
    """A release that has to be repeated opens the name at once."""

    def withdraw_at_once(backend: AnyBackend, claim: Claim, until: float = 0.0) -> Flow[bool]:
        return honest_withdraw(backend, claim)

    def release_until_done(backend: AnyBackend, claim: Claim, until: float = 0.0) -> Flow[None]:
        return honest_keep(backend, claim)

    honest_withdraw, honest_keep = withdraw.withdraw, withdraw.release_until_done
    patch(coordinator_core, "withdraw", withdraw_at_once)
    patch(coordinator_core, "release_until_done", release_until_done)


@bug("a timeout is kept")
def timeout_restarts_on_every_wake(patch: Patch) -> None:
    """Each request restarts the timeout (5)."""

    def await_turn(
        backend: AnyBackend, claim: Claim, queued: Queued, began: float, timeout: float | None, *rest: Any
    ) -> Flow[Hold | Grant | Queued | None]:
        now: float = yield NOW
        return (yield from honest(backend, claim, queued, now, timeout, *rest))

    honest = acquire._await_turn
    patch(acquire, "_await_turn", await_turn)


@bug("nobody waits for ever")
def lost_push_sticks(patch: Patch) -> None:
    """A waiter relies on its push, and never polls (18)."""
    patch(Line, "look_again", lambda *_: 10**12)


@bug("nobody waits for ever")
def deadlock_is_not_detected(patch: Patch) -> None:
    """Waiters in a cycle wait for each other for ever."""
    patch(acquire, "detect_deadlock", _nothing)
    patch(multi, "detect_deadlock", _nothing)


@bug("a lease has its place in the line")
def stale_push_accepted(patch: Patch) -> None:
    """A push is accepted, even if a later reply has shown that its grant has ended."""

    def turn(self: QueueBackend, claim: Claim, queued: Queued, timeout: float) -> Flow[Grant | None]:
        return honest(self, claim, replace(queued, mark=0), timeout)

    honest = QueueBackend.turn
    patch(QueueBackend, "turn", turn)


@bug("a lease begins alive")
def stale_grant_accepted(patch: Patch) -> None:
    """A grant whose reply took longer than its ttl is handed to the caller (1)."""
    patch(acquire, "begin", Hold)
    patch(multi, "fresh", lambda *_: True)


@bug("a limiter keeps its rate")
def limiter_does_not_wait(patch: Patch) -> None:
    """A caller that was told to wait passes at once."""
    patch(limiter, "Sleep", lambda _: Sleep(0.0))


def _nothing(*_: Any) -> Flow[None]:
    return
    yield
