"""The command's process tree: its process group, and on Linux every descendant.

1. The command is the leader of a process group of its own, in our session: signals reach its children too, and it
   can have the terminal.
2. On Linux we are the subreaper: a descendant whose parent ends becomes our child. So when the lease is lost,
   descendants that left the group (setsid) are found, too. And the command asks the kernel for SIGKILL when we die.
3. All of it runs between fork and exec of a process with one thread, where Python is safe.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

Prctl = Callable[[int, int], object]


def become_subreaper() -> Prctl | None:
    """Adopt orphaned descendants, where the system can. Returns prctl, loaded before any fork."""
    if not LINUX:
        return None
    prctl: Prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    return prctl


def start(
    command: Sequence[str], environment: Mapping[str, str], prctl: Prctl | None, prepare: Callable[[], None]
) -> int:
    """Start the command in a group of its own; returns its pid, which is the group's id. Raises OSError."""
    parent = os.getpid()

    def before_exec() -> None:
        prepare()
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # it died before we could ask
                os._exit(128 + signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    # Blocked across the fork, so that no signal for the command is noted by our handlers in the child.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        child = subprocess.Popen(command, env=environment, process_group=0, close_fds=False, preexec_fn=before_exec)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    child.returncode = 0  # waited for by the supervisor, not by this object
    return child.pid


def signal_group(group: int, number: int) -> bool:
    """Send a signal to the group. False if no process is left in it."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # all that is left runs as another user: alive, but out of reach
        return True
    return True


def signal_each(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def stop_group(group: int, grace: float) -> None:
    """TERM, and KILL after `grace` if a process is left. For the holder, which is not the command's parent."""
    end = time.monotonic() + grace
    signal_group(group, signal.SIGTERM)
    signal_group(group, signal.SIGCONT)
    while _at_work(group) and time.monotonic() < end:
        time.sleep(0.02)
    signal_group(group, signal.SIGKILL)


def descendants(ancestor: int, without: int) -> list[int]:
    """The live descendants of a process, leaving out one branch. Empty where the system does not tell."""
    children: dict[int, list[int]] = {}
    for pid, parent, _ in _live():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    todo = [ancestor]
    while todo:
        for child in children.get(todo.pop(), ()):
            if child != without:
                found.append(child)
                todo.append(child)
    return found


def _at_work(group: int) -> bool:
    """Whether a process of the group still runs; zombies do not count."""
    if not signal_group(group, 0):
        return False
    return not LINUX or any(member == group for _, _, member in _live())


def _live() -> Iterator[tuple[int, int, int]]:
    """Every process that has not ended: its pid, its parent, its group."""
    for entry in os.listdir("/proc") if LINUX else ():
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    state, parent, group = file.read().rpartition(")")[2].split()[:3]
            except OSError:  # it has ended meanwhile
                continue
            if state not in "ZX":
                yield int(entry), int(parent), int(group)
