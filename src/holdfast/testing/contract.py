"""The contract: every promise, on an engine of your choice, with pytest or without.

    import holdfast.testing

    class TestMine(holdfast.testing.Contract):
        url = "mine://localhost:7777"

gives one test per promise and body. An engine that is not reached by a URL says how it is made:

    class TestMine(holdfast.testing.Contract):
        @classmethod
        def under_test(cls):
            return holdfast.testing.EngineUnderTest("mine://", open=my_engine, many_processes=False)

where `my_engine(url, namespace, request_timeout)` answers with a `holdfast.ports.Engine`. An engine that is not reached
by TCP, or whose URL does not say host:port, also says `network=False`: what is promised about connections (the files
with "network" in their name) does not apply to it. Where it applies, `holdfast.connect` must know the scheme.

What the engine cannot keep it declares itself, in `backend.promises` (see `holdfast.model.Promises`): promises that
need it do not run, and the promises of `declared.py` see that the declaration is true.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import ClassVar

from ..errors import Misconfigured
from ..model import Promises
from .clock import FakeClock
from .context import BODIES, Body, Context
from .engine_under_test import EngineUnderTest
from .promise import Promise, contract_promises

HANG_S = 100.0
"""How long a promise may take before it counts as hanging, in real seconds."""


def run_promise(promise: Promise, under_test: EngineUnderTest, body: Body) -> None:
    """Run one promise; raises what it found (an `AssertionError`, mostly)."""
    if promise.network and not under_test.network:
        return  # there is no connection that could be lost
    virtual = body == "asyncio" and under_test.own_clock and not promise.real_time
    if virtual:
        FakeClock().run(_run(promise, under_test, body, virtual))
    else:
        asyncio.run(_run(promise, under_test, body, virtual))


async def _run(promise: Promise, under_test: EngineUnderTest, body: Body, virtual: bool) -> None:
    context = Context(under_test, body, virtual)
    failed = True
    try:
        async with _bounded(promise.name):
            declared = (await context.connect()).promises
            lacking = {what for what in promise.needs_of(body) if what not in declared}
            if promise.without in declared:
                pass  # the engine keeps it, so nothing else holds instead
            elif not lacking:
                await promise.run(context)
            elif lacking <= Promises.LISTED:
                await _expect_refusal(promise, context, lacking)
        failed = False
    finally:
        async with _bounded(f"the end of {promise.name}"):
            await context.end(failed, promise.leaves)


@asynccontextmanager
async def _bounded(name: str) -> AsyncIterator[None]:
    """End a promise that hangs, in real time, however the clock of its loop goes."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    cancelled: list[bool] = []

    def cancel() -> None:
        cancelled.append(task.cancel())

    watchdog = threading.Timer(HANG_S, loop.call_soon_threadsafe, (cancel,))
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    except asyncio.CancelledError as error:
        if not cancelled:
            raise
        task.uncancel()
        raise AssertionError(f"{name} takes longer than {HANG_S:g} s: it hangs") from error
    finally:
        watchdog.cancel()


async def _expect_refusal(promise: Promise, context: Context, lacking: set[str]) -> None:
    """What an engine cannot keep it must refuse at once, and say why."""
    refused: list[str] = []
    try:
        await asyncio.ensure_future(promise.run(context))
    except* Misconfigured as group:
        refused = [str(error) for error in leaves(group)]
    assert refused, f"Misconfigured was not raised, although the engine lacks {', '.join(sorted(lacking))}"
    assert any(what in text for text in refused for what in lacking), refused


def leaves(error: BaseException) -> list[BaseException]:
    """The errors in a group of groups."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in leaves(one)]
    return [error]


class Contract:
    """The contract as a class of tests: subclass it, and say where the engine is."""

    url: ClassVar[str]

    @classmethod
    def under_test(cls) -> EngineUnderTest:
        """The engine of the URL, unless a subclass says otherwise."""
        return EngineUnderTest(cls.url)

    def __init_subclass__(cls) -> None:
        if "venue" in vars(cls):
            warnings.warn("Contract.venue is now called Contract.under_test", DeprecationWarning, stacklevel=2)
            cls.under_test = cls.venue  # type: ignore[attr-defined, method-assign]
        for promise in contract_promises():
            for body in BODIES:
                test = _test(promise, body)
                setattr(cls, test.__name__, test)


def _test(promise: Promise, body: Body) -> Callable[[Contract], None]:
    def test(self: Contract) -> None:
        run_promise(promise, self.under_test(), body)

    test.__name__ = f"test_{promise.name.replace('.', '__')}__{body}"
    test.__doc__ = promise.run.__doc__
    return test
