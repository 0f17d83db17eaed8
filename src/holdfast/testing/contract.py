"""The contract: every promise, on an engine of your choice, with pytest or without.

    import holdfast.testing

    class TestMine(holdfast.testing.Contract):
        url = "mine://localhost:7777"

gives one test per promise and body. An engine that is not reached by a URL says how it is made:

    class TestMine(holdfast.testing.Contract):
        @classmethod
        def venue(cls):
            return holdfast.testing.Venue("mine://", open=my_engine, many_processes=False)

where `my_engine(url, namespace, request_timeout)` answers with a `holdfast.ports.Engine`. An engine that is not reached
by TCP, or whose URL does not say host:port, also says `network=False`: what is promised about connections (the files
with "network" in their name) does not apply to it. Where it applies, `holdfast.connect` must know the scheme.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import ClassVar

from ..errors import Misconfigured
from .clock import FakeClock
from .promise import Promise, contract_promises
from .stage import BODIES, Body, Stage
from .venue import Venue

LONGEST = 100.0
"""How long a promise may take before it counts as hanging, in real seconds."""


def play(promise: Promise, venue: Venue, body: Body) -> None:
    """Play one promise; raises what it found (an `AssertionError`, mostly)."""
    if promise.network and not venue.network:
        return  # there is no connection that could be lost
    virtual = body == "asyncio" and venue.own_clock and not promise.real_time
    if virtual:
        FakeClock().run(_perform(promise, venue, body, virtual))
    else:
        asyncio.run(_perform(promise, venue, body, virtual))


async def _perform(promise: Promise, venue: Venue, body: Body, virtual: bool) -> None:
    stage = Stage(venue, body, virtual)
    failed = True
    try:
        async with _bounded(promise.name):
            kept = (await stage.connect()).promises.kept
            if promise.needs <= kept:
                await promise.play(stage)
            else:
                await _see_it_refused(promise, stage, promise.needs - kept)
        failed = False
    finally:
        async with _bounded(f"the end of {promise.name}"):
            await stage.end(failed, promise.leaves)


@asynccontextmanager
async def _bounded(name: str) -> AsyncIterator[None]:
    """End a promise that hangs, in real time, however the clock of its loop goes."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    struck: list[bool] = []

    def strike() -> None:
        struck.append(task.cancel())

    watchdog = threading.Timer(LONGEST, loop.call_soon_threadsafe, (strike,))
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    except asyncio.CancelledError as error:
        if not struck:
            raise
        task.uncancel()
        raise AssertionError(f"{name} takes longer than {LONGEST:g} s: it hangs") from error
    finally:
        watchdog.cancel()


async def _see_it_refused(promise: Promise, stage: Stage, missing: frozenset[str]) -> None:
    """What an engine can not do it must refuse at once, and say why."""
    error = await stage.fails(Misconfigured, promise.play(stage))
    assert any(what in str(error) for what in missing), error


class Contract:
    """The contract as a class of tests: subclass it, and say where the engine is."""

    url: ClassVar[str]

    @classmethod
    def venue(cls) -> Venue:
        """Where the promises are played: by the URL, unless a subclass says otherwise."""
        return Venue(cls.url)

    def __init_subclass__(cls) -> None:
        for promise in contract_promises():
            for body in BODIES:
                test = _test(promise, body)
                setattr(cls, test.__name__, test)


def _test(promise: Promise, body: Body) -> Callable[[Contract], None]:
    def test(self: Contract) -> None:
        play(promise, self.venue(), body)

    test.__name__ = f"test_{promise.name.replace('.', '__')}__{body}"
    test.__doc__ = promise.play.__doc__
    return test
