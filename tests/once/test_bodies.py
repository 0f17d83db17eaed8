"""Whatever a body or a hook does wrong: nobody is locked out, and work that was done is not simply done again."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.errors import BackendUnavailable
from tests.once.test_faults import LosesReplies


def _undecided(error: BaseException) -> str:
    raise RuntimeError("on_error itself has failed")


@pytest.mark.parametrize("on_error", [_undecided, lambda error: "maybe"])
def test_an_error_that_nobody_decides_about_is_in_doubt(on_error: Any) -> None:
    """The attempt is over, and not kept alive for ever; the error of the body comes out."""
    with holdfast.connect("memory://undecided") as locks:
        once = locks.once("payments", keep="1h", takeover="refuse", on_error=on_error)
        with pytest.raises(LookupError), once.attempt("order/7") as attempt:
            raise LookupError("no such card")
        view = once.look("order/7")
        assert view is not None
        assert (attempt.done, view.state, view.error) == (False, "dead", "LookupError: no such card")
        once.forget("order/7")


def test_a_cancelled_on_error_leaves_the_attempt_in_doubt() -> None:
    async def main() -> None:
        asked = asyncio.Event()

        async def decide(error: BaseException) -> str:
            asked.set()
            await asyncio.sleep(3600)
            return "retry"

        async with holdfast.aio.connect("memory://cancelled-on-error") as locks:
            once = locks.once("payments", keep="1h", takeover="refuse", on_error=decide)
            attempt = once.attempt("order/7")

            async def work() -> None:
                async with attempt:
                    raise LookupError("no such card")

            task = asyncio.ensure_future(work())
            await asked.wait()
            task.cancel()
            await asyncio.wait([task])
            view = await once.look("order/7")
            assert view is not None
            assert view.state == "dead"

    asyncio.run(main())


class _Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it cannot say what it is")


def test_an_error_that_cannot_be_shown_ends_the_attempt() -> None:
    with holdfast.connect("memory://mute") as locks:
        once = locks.once("payments", keep="1h", takeover="refuse")
        with pytest.raises(_Mute), once.attempt("order/7"):
            raise _Mute
        view = once.look("order/7")
        assert view is not None
        assert (view.state, view.error) == ("ended", "_Mute")


def test_work_whose_complete_has_failed_is_in_doubt_even_if_the_body_goes_on() -> None:
    """A body that catches the error has done its work all the same: a second run would do it twice."""
    with holdfast.connect("memory://swallowed") as locks:
        lose: list[str] = []
        locks._wire = LosesReplies(locks._wire, lose)
        once = locks.once("payments", keep="1h", takeover="refuse")
        attempt = once.attempt("order/7").__enter__()
        lose += ["before"] * 4
        with pytest.raises(BackendUnavailable):
            attempt.complete("paid")
        with pytest.raises(holdfast.Misconfigured, match="in doubt"):
            attempt.__exit__(None, None, None)
        with pytest.raises(holdfast.AttemptInDoubt), once.attempt("order/7"):
            raise AssertionError("it was begun again")


def test_whoever_was_refused_and_says_no_more_was_told_all() -> None:
    with holdfast.connect("memory://refused") as locks:
        once = locks.once("payments", keep="1h", takeover="refuse")
        with once.attempt("order/7") as attempt:
            once.forget("order/7")
            with pytest.raises(holdfast.FenceRejected):
                attempt.complete("paid")
        assert once.look("order/7") is None


def test_a_phase_is_what_it_was_when_it_was_reached() -> None:
    """Its value is the same for the attempt and for those after it, whatever becomes of the object."""
    with holdfast.connect("memory://phases") as locks:
        once = locks.once("orders", keep="1h", takeover="rerun")
        items: list[object] = [(1, 2)]
        with once.attempt("order/8") as attempt:
            attempt.phase("packed", items)
            items.append(object())
            attempt.phases["packed"].append("more")
            assert attempt.phases == {"packed": [[1, 2]]}
            attempt.complete()
        view = once.look("order/8")
        assert view is not None
        assert view.phases == {"packed": [[1, 2]]}


def test_a_payload_that_is_too_deep_is_refused() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with holdfast.connect("memory://deep") as locks:
        with pytest.raises(holdfast.Misconfigured, match="fingerprint"):
            locks.once("orders", keep="1h", takeover="rerun").attempt("order/8", fingerprint=deep)
    while deep:
        deep = deep.pop()  # type: ignore[assignment]  # not all at once, which some Pythons do by recursion


@pytest.mark.parametrize("way", ["raise", "leave"])
def test_a_forked_child_that_leaves_the_block_leaves_the_attempt_alone(way: str, tmp_path: Path) -> None:
    """It is its parent's: neither ended, so that another one does the work as well, nor in doubt."""
    with holdfast.connect(f"sqlite:///{tmp_path}/locks.db") as locks:
        once = locks.once("payments", keep="1h", takeover="refuse")
        with once.attempt("order/7") as attempt:
            child = os.fork()
            if child == 0:
                try:
                    attempt.__exit__(*((ValueError, ValueError("child"), None) if way == "raise" else (None,) * 3))
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            view = once.look("order/7")
            assert view is not None
            assert (view.state, view.token, view.error) == ("running", attempt.token, "")
            attempt.complete("paid")
        with once.attempt("order/7") as again:
            assert again.result == "paid"
