"""A fork of a holder that tells nobody, as servers in C do it (uWSGI): the child has the lease, and must not use it.

1. The fork is libc's, so none of Python's hooks run. The child finds out by itself, or it does not.
2. In an order by chance the child looks at the lease (`check`), lets go of it (`release`), and takes locks by its
   parent's coordinator: the one that its parent holds, and one that nobody does. The parent goes on meanwhile.
3. The child is one more process in the history, and what it is granted is judged with the rest. What only it can see,
   it tells: a lease that is good in two processes, a release that freed it, two processes that are one owner.
4. Threads do not cross a fork, and what they had locked stays locked. A child may hang by that, whatever we do; it is
   ended by an alarm, and counted apart.
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
from .actor import Actor, Held
from .event_loop import LoopLease

HANGS_S = 10
"""A child that has not ended after so many seconds hangs."""
_BETWEEN_THREADS_S = 0.01
"""Longer than the interpreter's switch interval."""
_END = "end"


@dataclass(slots=True)
class Child:
    """A child as its parent sees it."""

    pid: int
    _told: int
    began: int = field(default_factory=now)

    def over(self, wait: bool = False) -> bool:
        """Whether it has ended, or hung for long enough."""
        left = HANGS_S + 1 - (now() - self.began) / 1e9
        watch = select.poll()
        watch.register(self._told, 0)  # its end of the pipe is closed when it ends, however it does
        return bool(watch.poll(max(0.0, left) * 1000 if wait else 0)) or left <= 0

    def misdeed(self) -> str | None:
        """What it could do and must not, empty if nothing; None if it hung. To be asked once, when it is over."""
        os.kill(self.pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
        os.waitpid(self.pid, 0)
        with os.fdopen(self._told) as pipe:
            told = pipe.read()
        return None if not told else told.removesuffix(_END)


def fork(actor: Actor, held: Held, chance: random.Random) -> Child:
    """Fork a holder. Returns in the parent only."""
    deeds = [_look, _let_go, _take]
    chance.shuffle(deeds)
    out, into = os.pipe()
    if (pid := _fork_unheard()) == 0:
        signal.alarm(HANGS_S)
        os.write(into, (_first_misdeed(actor, held, deeds) or _END).encode())
        os._exit(0)
    os.close(into)
    return Child(pid, out)


def _fork_unheard() -> int:
    """By libc, with the interpreter to itself: the child would wait for a thread that has asked for its turn."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(HANGS_S)
    time.sleep(_BETWEEN_THREADS_S)  # whoever asked by the old interval has had its turn
    try:
        return int(ctypes.PyDLL(None).fork())
    finally:
        sys.setswitchinterval(interval)


def _first_misdeed(actor: Actor, held: Held, deeds: Sequence[Callable[[Actor, Held], str]]) -> str:
    """In the child. It stops there: what shares a connection with its parent breaks it, and blurs what was wrong."""
    try:
        actor.begin_anew()
        return next((wrong for deed in deeds if (wrong := deed(actor, held))), "")
    except BackendUnavailable:
        return ""  # the engine was struck meanwhile
    except BaseException as error:  # noqa: BLE001  told to the run, which fails
        return f"a forked child failed: {type(error).__name__}: {error}"


def _look(actor: Actor, held: Held) -> str:
    lease = held.lease
    try:
        lease.check()
    except LeaseLost:
        return ""
    return f"check() passed in a forked child: two processes hold {lease.name!r} with token {lease.token}"


def _let_go(actor: Actor, held: Held) -> str:
    lease: Any = held.lease
    freed = asyncio.run(lease.release_here()) if isinstance(lease, LoopLease) else lease.release()
    return f"release() in a forked child freed {lease.name!r}, which its parent holds" if freed else ""


def _take(actor: Actor, held: Held) -> str:
    lease: Any = held.lease
    if isinstance(lease, LoopLease):
        return ""  # a coordinator of asyncio belongs to the loop that it was made in, and that did not cross
    for name, timeout in ((lease.name, 0.0), (f"{lease.name}/child", 1.0)):
        mine = actor.acquire(name, timeout)
        if not isinstance(mine, Held):
            continue
        owner, token = mine.lease.owner, mine.lease.token
        if owner.rpartition("-")[0] == lease.owner.rpartition("-")[0]:
            return f"a forked child took {name!r} as {owner}, and its parent holds {lease.name!r} as {lease.owner}"
        if name == lease.name and token <= lease.token:
            return f"a forked child was granted {name!r} with token {token}, and its parent with {lease.token}"
        actor.release(mine)
    return ""
