"""A fork of a holder without Python's hooks, as servers in C do it (uWSGI): the child has the lease, but not the right.

1. The fork is libc's, so none of Python's hooks run: holdfast must detect it by itself.
2. In a random order the child checks the lease, releases it, and acquires locks through its parent's coordinator: the
   one that its parent holds, and a free one. The parent goes on meanwhile.
3. The child is one more process in the history, and its grants are judged with the rest. It reports what only it can
   see: a lease that is good in two processes, a release that freed it, two processes with one owner.
4. Threads do not survive a fork, and what they had locked stays locked. So a child may hang; it is ended by an alarm
   and counted apart.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import BackendUnavailable, LeaseLost
from ..history import now
from .actor import HeldLease, LockActor
from .event_loop import LoopLease

HANG_LIMIT_S = 10
"""A child that has not ended by then counts as hung."""
_BETWEEN_THREADS_S = 0.01
"""Longer than the interpreter's switch interval."""
_END = "end"


@dataclass(slots=True)
class ForkedChild:
    """A child as its parent sees it."""

    pid: int
    _told: int
    began: int = field(default_factory=now)

    def over(self, wait: bool = False) -> bool:
        """Whether it has ended, or hung for long enough."""
        left = HANG_LIMIT_S + 1 - (now() - self.began) / 1e9
        watch = select.poll()
        watch.register(self._told, 0)  # its end of the pipe is closed when it ends, however it does
        return bool(watch.poll(max(0.0, left) * 1000 if wait else 0)) or left <= 0

    def misuse(self) -> str | None:
        """How it could misuse the lease, empty if it could not; None if it hung. Call it once, when it has ended."""
        os.kill(self.pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
        os.waitpid(self.pid, 0)
        with os.fdopen(self._told) as pipe:
            told = pipe.read()
        return None if not told else told.removesuffix(_END)


def fork(actor: LockActor, held: HeldLease, chance: random.Random) -> ForkedChild:
    """Fork a holder. Returns in the parent only."""
    steps = [_try_check, _try_release, _try_acquire]
    chance.shuffle(steps)
    out, into = os.pipe()
    if (pid := _fork_without_hooks()) == 0:
        signal.alarm(HANG_LIMIT_S)
        os.write(into, (_first_misuse(actor, held, steps) or _END).encode())
        os._exit(0)
    os.close(into)
    return ForkedChild(pid, out)


def _fork_without_hooks() -> int:
    """Fork by libc, while no thread waits for the interpreter lock: the child would wait for such a thread for ever."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(HANG_LIMIT_S)
    time.sleep(_BETWEEN_THREADS_S)  # a thread that asked by the old interval has had its turn
    try:
        return int(ctypes.PyDLL(None).fork())
    finally:
        sys.setswitchinterval(interval)


def _first_misuse(actor: LockActor, held: HeldLease, steps: Sequence[Callable[[LockActor, HeldLease], str]]) -> str:
    """In the child. It stops at the first: a connection shared with the parent breaks by use, hiding the cause."""
    try:
        actor.begin_anew()
        return next((wrong for step in steps if (wrong := step(actor, held))), "")
    except BackendUnavailable:
        return ""  # a fault of the engine meanwhile
    except BaseException as error:  # noqa: BLE001  told to the run, which fails
        return f"a forked child failed: {type(error).__name__}: {error}"


def _try_check(actor: LockActor, held: HeldLease) -> str:
    lease = held.lease
    try:
        lease.check()
    except LeaseLost:
        return ""
    return f"check() passed in a forked child: two processes hold {lease.name!r} with token {lease.token}"


def _try_release(actor: LockActor, held: HeldLease) -> str:
    lease: Any = held.lease
    freed = asyncio.run(lease.release_here()) if isinstance(lease, LoopLease) else lease.release()
    return f"release() in a forked child freed {lease.name!r}, which its parent holds" if freed else ""


def _try_acquire(actor: LockActor, held: HeldLease) -> str:
    lease: Any = held.lease
    if isinstance(lease, LoopLease):
        return ""  # a coordinator of asyncio belongs to its loop, which the child does not have
    for name, timeout in ((lease.name, 0.0), (f"{lease.name}/child", 1.0)):
        mine = actor.acquire(name, timeout)
        if not isinstance(mine, HeldLease):
            continue
        owner, token = mine.lease.owner, mine.lease.token
        if owner.rpartition("-")[0] == lease.owner.rpartition("-")[0]:
            return f"a forked child took {name!r} as {owner}, and its parent holds {lease.name!r} as {lease.owner}"
        if name == lease.name and token <= lease.token:
            return f"a forked child was granted {name!r} with token {token}, and its parent with {lease.token}"
        actor.release(mine)
    return ""
