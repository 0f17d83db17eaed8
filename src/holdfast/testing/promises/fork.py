"""A forked child holds nothing, releases nothing, and shares nothing with its parent but the engine."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import warnings
from collections.abc import Callable, Coroutine
from typing import Any

from ...errors import LeaseLost
from ...model import State
from ..context import Context
from ..promise import promise

HANG_S = 15.0
"""A child that has said nothing for so many seconds hangs."""


async def in_a_child(check: Callable[[], object], fork: Callable[[], int] = os.fork) -> bool:
    """Fork, and have the child check something. False if it ended without a word."""
    out, into = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        pid = fork()
    if pid == 0:
        try:
            check()
            os.write(into, b"well")
        except BaseException as error:  # noqa: BLE001  all that matters is that the parent hears of it
            os.write(into, repr(error).encode())
        os._exit(0)
    os.close(into)
    pipe = os.fdopen(out, "rb")
    watchdog = asyncio.get_running_loop().call_later(HANG_S, os.kill, pid, signal.SIGKILL)
    try:
        said = await asyncio.to_thread(pipe.read)
    finally:
        watchdog.cancel()
        os.kill(pid, signal.SIGKILL)  # it has ended by itself, unless it hangs
        await asyncio.to_thread(os.waitpid, pid, 0)
        pipe.close()
    assert said == b"well" or (not said and fork is not os.fork), said.decode()
    return bool(said)


@promise(real_time=True)
async def the_child_holds_nothing(context: Context) -> None:
    """Its copy of the lease is lost, with the reason; its release does not reach the parent's hold."""
    locks = await context.connect()
    lease = await locks.lock("door", ttl=5).acquire()
    copy = context.unwrapped(lease)

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
        if context.body == "sync":
            assert copy.release() is False

    await in_a_child(check)
    lease.check()
    await lease.renew()
    assert [claim.token for claim in (await context.view("door")).holders] == [lease.token]
    assert await lease.release() is True


@promise(real_time=True)
async def the_end_of_the_child_is_not_the_end_of_the_hold(context: Context) -> None:
    """A child that closes its copy of everything closes nothing of the parent's."""
    locks = await context.connect()
    lease = await locks.lock("door", ttl=5).acquire()
    copy = context.unwrapped(locks)

    def check() -> None:
        if context.body == "sync":
            copy.close()
        else:
            asyncio.run(copy.close())

    await in_a_child(check)
    lease.check()
    assert [claim.token for claim in (await context.view("door")).holders] == [lease.token]
    assert await locks.lock("door").try_acquire() is None
    assert await lease.release() is True


@promise(real_time=True)
async def the_parent_goes_on(context: Context) -> None:
    """What it waits for, holds and renews survives a fork in the middle."""
    locks = await context.connect()
    first = await locks.lock("door", ttl=3).acquire()
    waiter = context.start(locks.lock("door", ttl=3).acquire())
    await context.queued("door", 1)
    await in_a_child(lambda: None)
    assert await first.release() is True
    second = await waiter
    assert second.token > first.token
    await second.renew()
    assert await second.release() is True


def fork_of_the_c_library() -> int:
    """A fork that Python does not hear of, as uWSGI's."""
    return int(ctypes.PyDLL(None).fork())


def run_anew(coroutine: Coroutine[Any, Any, object]) -> object:
    """In a child that the interpreter does not know of: it still takes the parent's loop for running."""
    asyncio._set_running_loop(None)
    return asyncio.run(coroutine)


@promise(real_time=True)
async def the_child_of_a_fork_that_told_nobody_holds_nothing(context: Context) -> None:
    """Whatever it does first: look, release, close, or take. What it takes is its own, and the parent goes on."""
    locks = await context.connect()
    lease = await locks.lock("door", ttl=5).acquire()
    mine, copy = context.unwrapped(locks), context.unwrapped(lease)
    prefix = lease.owner.rpartition("-")[0]

    def refused() -> None:
        try:
            copy.check()
        except LeaseLost:
            assert copy.reason == "forked"
        else:
            raise AssertionError("check() let the child pass")

    def looks() -> None:
        assert (copy.state, copy.reason, copy.remaining()) == (State.LOST, "forked", 0.0)
        assert copy.lost.is_set()

    def releases() -> None:
        assert (copy.release() if context.body == "sync" else run_anew(copy.release())) is False
        refused()

    def closes() -> None:
        if context.body == "sync":
            mine.close()
        else:
            run_anew(mine.close())
        refused()

    def takes() -> None:
        if context.body == "sync":  # a coordinator of asyncio belongs to the loop that it was made in
            other = mine.lock("child", ttl=5).acquire(timeout=5)
            assert other.owner.rpartition("-")[0] != prefix
            assert other.release()
            with mine.lock_all(["child", "window"], ttl=5, timeout=5) as leases:
                assert leases["child"].owner.rpartition("-")[0] != prefix
            if context.under_test.many_processes:
                assert mine.lock("door").try_acquire() is None
        refused()

    for check in (refused, looks, releases, closes, takes):
        for _ in range(3):  # such a fork may strike while another thread has a lock of the interpreter's own
            if await in_a_child(check, fork_of_the_c_library):
                break
        else:
            raise AssertionError(f"the child hangs, each time, when it {check.__name__}")
        lease.check()
        await lease.renew()
        assert [claim.token for claim in (await context.view("door")).holders] == [lease.token]
    assert await lease.release() is True
