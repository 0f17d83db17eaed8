"""A forked child holds nothing, releases nothing, and shares nothing with its parent but the engine."""

from __future__ import annotations

import asyncio
import os
import signal
import warnings
from collections.abc import Callable

from ...errors import LeaseLost
from ...model import State
from ..promise import promise
from ..stage import Stage


async def in_a_child(check: Callable[[], object]) -> None:
    """Fork, and have the child check something."""
    out, into = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        pid = os.fork()
    if pid == 0:
        try:
            check()
            os.write(into, b"well")
        except BaseException as error:  # noqa: BLE001  all that matters is that the parent hears of it
            os.write(into, repr(error).encode())
        os._exit(0)
    os.close(into)
    pipe = os.fdopen(out, "rb")
    try:
        said = await asyncio.to_thread(pipe.read)
    finally:
        os.kill(pid, signal.SIGKILL)  # it has ended by itself, unless it hangs
        await asyncio.to_thread(os.waitpid, pid, 0)
        pipe.close()
    assert said == b"well", said.decode()


@promise(real_time=True)
async def the_child_holds_nothing(stage: Stage) -> None:
    """Its copy of the lease is lost, with the reason; its release does not reach the parent's hold."""
    locks = await stage.connect()
    lease = await locks.lock("door", ttl=5).acquire()
    copy = stage.plain(lease)

    def check() -> None:
        assert (copy.state, copy.reason) == (State.LOST, "forked")
        assert copy.remaining() == 0
        assert copy.lost.is_set()
        try:
            copy.check()
        except LeaseLost:
            pass  # as it must
        else:
            raise AssertionError("check() let the child pass")
        if stage.body == "sync":
            assert copy.release() is False

    await in_a_child(check)
    lease.check()
    await lease.renew()
    assert [claim.token for claim in (await stage.view("door")).holders] == [lease.token]
    assert await lease.release() is True


@promise(real_time=True)
async def the_end_of_the_child_is_not_the_end_of_the_hold(stage: Stage) -> None:
    """A child that closes its copy of everything closes nothing of the parent's."""
    locks = await stage.connect()
    lease = await locks.lock("door", ttl=5).acquire()
    copy = stage.plain(locks)

    def check() -> None:
        if stage.body == "sync":
            copy.close()
        else:
            asyncio.run(copy.close())

    await in_a_child(check)
    lease.check()
    assert [claim.token for claim in (await stage.view("door")).holders] == [lease.token]
    assert await locks.lock("door").try_acquire() is None
    assert await lease.release() is True


@promise(real_time=True)
async def the_parent_goes_on(stage: Stage) -> None:
    """What it waits for, holds and renews survives a fork in the middle."""
    locks = await stage.connect()
    first = await locks.lock("door", ttl=3).acquire()
    waiter = stage.start(locks.lock("door", ttl=3).acquire())
    await stage.queued("door", 1)
    await in_a_child(lambda: None)
    assert await first.release() is True
    second = await waiter
    assert second.token > first.token
    await second.renew()
    assert await second.release() is True
