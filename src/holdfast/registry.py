"""The open coordinators of this process: closed at its end, and made to hold nothing in a forked child.

1. `os.fork` calls our hooks (`register_at_fork`): wires finish the requests in flight before it, and the child begins
   anew.
2. A fork by C code (uWSGI, `libc`) calls no hooks. So every acquire, check, renewal and release compares the process
   id with its coordinator's (`here`): a difference is a fork, noticed late, but before a use.
3. A process of `multiprocessing` ends without `atexit`, but runs its own finalizers.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from os import getpid
from typing import Protocol

from ._core.flow import Flow
from .observe.log_exception import log_exception
from .ports import AnyEngine


class Registered(Protocol):
    def _before_fork(self) -> None: ...

    def _after_fork_in_parent(self) -> None: ...

    def _after_fork_in_child(self) -> None: ...

    def _at_exit(self) -> None: ...


_open: weakref.WeakSet[Registered] = weakref.WeakSet()
_pid = getpid()
_noticing: dict[int, threading.Lock] = {}
"""By process id: a lock that was made in this very process, and so is not held by a thread that did not cross."""


def register(coordinator: Registered) -> None:
    notice_fork()
    _open.add(coordinator)
    _end_with_multiprocessing()


def unregister(coordinator: Registered) -> None:
    _open.discard(coordinator)


_frozen: list[Registered] = []


def _before_fork() -> None:
    notice_fork()
    _frozen.extend(_open)
    for coordinator in _frozen:
        coordinator._before_fork()


def _after_fork_in_parent() -> None:
    while _frozen:
        _frozen.pop()._after_fork_in_parent()


def _after_fork_in_child() -> None:
    global _pid
    _pid = getpid()
    while _frozen:
        _frozen.pop()._after_fork_in_child()


def notice_fork() -> None:
    """Does nothing, unless this process is a forked child whose hooks did not run (rule 2)."""
    global _pid
    pid = getpid()
    if pid == _pid:
        return
    with _noticing.setdefault(pid, threading.Lock()):
        if pid != _pid:
            _frozen.clear()
            for coordinator in list(_open):
                coordinator._after_fork_in_child()
            _pid = pid


class LastResort:
    """How a flow is run at the end of the process, when its own loop is gone: set by the blocking driver."""

    run: Callable[[Flow[object], AnyEngine], None] = staticmethod(lambda flow, engine: flow.close())


def warn_unclosed(what: str, source: object) -> None:
    """A coordinator was garbage-collected without being closed."""
    warnings.warn(
        f"{what} was dropped without close(): what it held expires; use `with`, or close it",
        ResourceWarning,
        stacklevel=2,
        source=source,
    )


def _at_exit() -> None:
    notice_fork()
    for coordinator in list(_open):
        try:
            coordinator._at_exit()
        except Exception:  # noqa: BLE001  what is held expires; the others are still to be closed
            log_exception("%r could not be closed at the end of the process", coordinator)


_ends_with_multiprocessing = 0
"""The process whose end is taken care of (rule 3)."""


def _end_with_multiprocessing(_: object = None) -> None:
    global _ends_with_multiprocessing
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is None or _ends_with_multiprocessing == getpid():
        return
    _ends_with_multiprocessing = getpid()
    from multiprocessing import util

    if multiprocessing.parent_process() is not None:
        util.Finalize(None, _at_exit, exitpriority=0)
    util.register_after_fork(_open, _end_with_multiprocessing)  # it forgets its finalizers in a forked child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
atexit.register(_at_exit)
