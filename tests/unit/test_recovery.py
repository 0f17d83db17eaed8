"""The steps of a `Recovery`: their order, what ends them, and what the alert is told; on both sides of a loss."""

from __future__ import annotations

import asyncio

import pytest

import holdfast
import holdfast.aio
from holdfast.testing import lose


class Recorder:
    """Steps that write down that they were taken."""

    def __init__(self, **answers: object) -> None:
        self.taken: list[str] = []
        self.outcome = ""
        self._answers = answers

    def steps(self, *names: str) -> dict[str, object]:
        return {name: self._step(name) for name in names}

    def _step(self, name: str) -> object:
        def take(case: holdfast.RecoveryCase) -> object:
            self.taken.append(name)
            if name == "alert":
                self.outcome = f"{case.name} {case.reason} {case.outcome} {case.error!r}"
            answer = self._answers.get(name)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return take


ALL = ("stop", "verify", "compensate", "alert")


@pytest.mark.parametrize(
    ("answers", "taken", "outcome"),
    [
        ({"verify": True}, ["stop", "verify", "alert"], "orders/7 evicted verified None"),
        ({"verify": None}, ["stop", "verify", "alert"], "orders/7 evicted verified None"),
        ({"verify": False}, list(ALL), "orders/7 evicted compensated None"),
        ({"stop": OSError(5)}, ["stop", "alert"], "orders/7 evicted failed OSError(5)"),
        ({"verify": OSError(5)}, ["stop", "verify", "alert"], "orders/7 evicted failed OSError(5)"),
        ({"verify": False, "compensate": OSError(5)}, list(ALL), "orders/7 evicted failed OSError(5)"),
    ],
)
def test_the_steps_are_taken_in_order(answers: dict[str, object], taken: list[str], outcome: str) -> None:
    recorder = Recorder(**answers)
    steps = holdfast.Recovery(**recorder.steps(*ALL))  # type: ignore[arg-type]
    with holdfast.connect("memory://steps") as locks:
        lease = locks.lock("orders/7", recover=steps).acquire()
        locks.evict("orders/7", lease.token)
        try:
            locks.lock("orders/7", recover=steps).acquire().release()
        except OSError:
            assert "failed" in outcome
            [view] = locks.survey("orders/7")
            assert view.unrecovered is not None
            locks.lock("orders/7", recover=lambda lease, predecessor: None).acquire().release()
    assert (recorder.taken, recorder.outcome) == (taken, outcome)


def test_after_a_loss_of_ones_own() -> None:
    recorder = Recorder(verify=False)
    steps = holdfast.Recovery(**recorder.steps(*ALL))  # type: ignore[arg-type]
    with holdfast.connect("memory://own") as locks:
        lease = locks.lock("orders/7", on_lost=steps).acquire()
        lose(lease)
        for _ in range(1000):
            if recorder.outcome:
                break
            lease.lost.wait(0.01)
    assert recorder.taken == list(ALL)
    assert recorder.outcome.startswith("orders/7 ")


def test_with_tasks_a_step_may_be_awaited() -> None:
    async def main() -> list[str]:
        said: list[str] = []

        async def verify(case: holdfast.aio.RecoveryCase) -> bool:
            await asyncio.sleep(0)
            said.append(f"{case.token == lease.token}")
            return False

        steps = holdfast.aio.Recovery(verify=verify, compensate=lambda case: said.append(case.reason))
        async with holdfast.aio.connect("memory://tasks") as locks:
            lease = await locks.lock("orders/7", recover=steps).acquire()
            await locks.evict("orders/7", lease.token)
            async with locks.lock("orders/7", recover=steps):
                return said

    assert asyncio.run(main()) == ["True", "evicted"]


def test_a_cancelled_recovery_gives_the_lock_back() -> None:
    """And leaves the name unrecovered."""

    async def main() -> None:
        async with holdfast.aio.connect("memory://cancelled") as locks:
            lease = await locks.lock("orders/7", recover=lambda lease, predecessor: None).acquire()
            await locks.evict("orders/7", lease.token)
            began = asyncio.Event()

            async def for_ever(lease: holdfast.aio.Lease, predecessor: holdfast.Predecessor) -> None:
                began.set()
                await asyncio.Event().wait()

            task = asyncio.ensure_future(locks.lock("orders/7", recover=for_ever).acquire())
            await began.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            [view] = await locks.survey("orders/7")
            assert (view.holders, view.unrecovered and view.unrecovered.token) == ((), lease.token)

    asyncio.run(main())


def test_bad_input_is_refused() -> None:
    with pytest.raises(holdfast.Misconfigured, match="without a step"):
        holdfast.Recovery()
    with pytest.raises(holdfast.Misconfigured, match="verify"):
        holdfast.Recovery(verify=7)  # type: ignore[arg-type]
    with holdfast.connect("memory://bad") as locks, pytest.raises(holdfast.Misconfigured, match="recover"):
        locks.lock("orders/7", recover=7)  # type: ignore[arg-type]


def test_what_a_thread_would_not_await_is_refused() -> None:
    async def recover(lease: object, predecessor: object) -> None: ...

    with holdfast.connect("memory://threads") as locks, pytest.raises(holdfast.Misconfigured, match="coroutine"):
        locks.lock("orders/7", recover=recover)
