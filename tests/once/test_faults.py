"""Once when something goes wrong below it: lost replies, cancellations, a killed process."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.backends.record_requests import SwapRecord
from holdfast.errors import OutcomeUnknown


class LosesReplies:
    """A wire that loses the reply to every write that it is told to lose, after it was carried out, or before."""

    def __init__(self, wire: Any, lose: list[str]) -> None:
        self._wire = wire
        self._lose = lose

    def call(self, request: Any, timeout: float) -> Any:
        if not isinstance(request, SwapRecord) or not self._lose:
            return self._wire.call(request, timeout)
        if self._lose.pop(0) == "after":
            self._wire.call(request, timeout)
        raise OutcomeUnknown("the reply was lost")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("which", [0, 1])
def test_a_lost_reply_is_found_out(when: str, which: int) -> None:
    """Of the begin or of the complete, carried out or not: one attempt, one result."""
    with holdfast.connect(f"memory://lost-{when}-{which}") as locks:
        lose: list[str] = []
        locks._wire = LosesReplies(locks._wire, lose)
        once = locks.once("payments", keep="1h", takeover="refuse")
        if which == 0:
            lose.append(when)
        with once.attempt("order/7") as attempt:
            assert attempt.number == 1
            if which == 1:
                lose.append(when)
            attempt.complete("paid")
        assert lose == []
        with once.attempt("order/7") as again:
            assert again.result == "paid"


def test_a_begin_that_is_never_answered_is_given_back() -> None:
    """Nobody has begun the work, so nobody is in doubt about it."""
    with holdfast.connect("memory://unanswered") as locks:
        lose = ["after", "before", "before", "before"]
        locks._wire = LosesReplies(locks._wire, lose)
        once = locks.once("payments", keep="1h", takeover="refuse")
        with pytest.raises(OutcomeUnknown), once.attempt("order/7"):
            raise AssertionError("it has begun")
        with once.attempt("order/7", wait=60) as attempt:
            assert attempt.number == 2
            attempt.complete()


def test_a_complete_that_is_never_answered_is_in_doubt_and_not_repeated() -> None:
    """It was not written, the work is done, and a second run would do it twice."""
    with holdfast.connect("memory://incomplete") as locks:
        lose: list[str] = []
        locks._wire = LosesReplies(locks._wire, lose)
        once = locks.once("payments", keep="1h", takeover="refuse")
        attempt = once.attempt("order/7")
        attempt.__enter__()
        lose += ["before"] * 4
        with pytest.raises(OutcomeUnknown) as lost:
            attempt.complete("paid")
        attempt.__exit__(lost.type, lost.value, None)
        with pytest.raises(holdfast.AttemptInDoubt), once.attempt("order/7"):
            raise AssertionError("it was begun again")


def test_a_cancelled_body_is_dead_at_once() -> None:
    asyncio.run(_a_cancelled_body_is_dead_at_once())


async def _a_cancelled_body_is_dead_at_once() -> None:
    async with holdfast.aio.connect("memory://cancelled-body") as locks:
        once = locks.once("payments", keep="1h", takeover="refuse")
        begun = asyncio.Event()

        async def work() -> None:
            async with once.attempt("order/7"):
                begun.set()
                await asyncio.sleep(3600)

        task = asyncio.ensure_future(work())
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        view = await once.look("order/7")
        assert view is not None
        assert view.state == "dead"


def test_a_cancelled_wait_leaves_the_other_one_alone() -> None:
    asyncio.run(_a_cancelled_wait_leaves_the_other_one_alone())


async def _a_cancelled_wait_leaves_the_other_one_alone() -> None:
    async with holdfast.aio.connect("memory://cancelled-wait") as locks:
        once = locks.once("payments", keep="1h", takeover="refuse")
        async with once.attempt("order/7") as attempt:

            async def wait() -> None:
                async with once.attempt("order/7"):
                    pass

            task = asyncio.ensure_future(wait())
            await asyncio.sleep(0.05)
            task.cancel()
            await asyncio.wait([task])
            await attempt.complete("paid")
        view = await once.look("order/7")
        assert view is not None
        assert view.state == "done"


PROGRAM = """
import sys, time
import holdfast
locks = holdfast.connect(sys.argv[1])
with locks.once("payments", keep="1h", takeover="refuse", ttl=1.0).attempt("order/7") as attempt:
    attempt.phase("charged", "ref-1")
    print("charged", flush=True)
    time.sleep(600)
"""


def test_a_killed_process_leaves_a_dead_attempt_with_its_phases(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    with subprocess.Popen([sys.executable, "-c", PROGRAM, url], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "charged\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    seen: list[holdfast.AttemptView] = []

    def decide(dead: holdfast.AttemptView) -> object:
        seen.append(dead)
        return holdfast.Completed({"reference": dead.phases["charged"]})

    with holdfast.connect(url) as locks:
        with locks.once("payments", keep="1h", takeover=decide, ttl=1.0).attempt("order/7") as attempt:
            assert attempt.result == {"reference": "ref-1"}
        assert [(dead.state, dead.pid, dead.number) for dead in seen] == [("dead", process.pid, 1)]


def test_a_stopped_process_is_refused_when_it_goes_on(tmp_path: Path) -> None:
    """SIGSTOP for longer than the ttl: it is taken over, and its result is refused."""
    url = f"sqlite:///{tmp_path}/locks.db"
    program = PROGRAM.replace("time.sleep(600)", "sys.stdin.readline(); attempt.complete('zombie')")
    with subprocess.Popen(
        [sys.executable, "-c", program, url],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "charged\n"
        process.send_signal(signal.SIGSTOP)
        with holdfast.connect(url) as locks:
            once = locks.once("payments", keep="1h", takeover="rerun", ttl=1.0)
            with once.attempt("order/7") as attempt:
                assert attempt.phases == {"charged": "ref-1"}
                attempt.complete("successor")
            process.send_signal(signal.SIGCONT)
            _, error = process.communicate("\n", timeout=60)
            assert "FenceRejected" in error
            view = once.look("order/7")
            assert view is not None
            assert view.result == b'"successor"'


def test_several_threads_may_write_phases_of_one_attempt(tmp_path: Path) -> None:
    """None of them takes another one for a successor, and none undoes what another has written."""
    with holdfast.connect(f"sqlite:///{tmp_path}/locks.db") as locks:
        together = threading.Barrier(2)
        wire = locks._wire

        class Together:
            """Two swaps of the same version meet; the one that loses is told after the other has gone on."""

            def call(self, request: Any, timeout: float) -> Any:
                if isinstance(request, SwapRecord) and not second.is_set():
                    together.wait(30)
                    reply: Any = wire.call(request, timeout)
                    if not reply.done:
                        second.wait(30)
                    return reply
                return wire.call(request, timeout)

            def __getattr__(self, name: str) -> Any:
                return getattr(wire, name)

        second = threading.Event()
        with locks.once("payments", keep="1h", takeover="refuse").attempt("order/7") as attempt:
            locks._wire = Together()
            failures: list[BaseException] = []

            def write(name: str) -> None:
                try:
                    attempt.phase(name)
                except BaseException as error:  # noqa: BLE001  told below, in the test's own thread
                    failures.append(error)
                finally:
                    second.set()  # the first one is through: no more meetings

            threads = [threading.Thread(target=write, args=(name,)) for name in ("charged", "sent")]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            locks._wire = wire
            assert failures == []
            assert set(attempt.phases) == {"charged", "sent"}
            attempt.complete()
