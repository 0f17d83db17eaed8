"""The reaper: a process that outlives the run to clean up after it.

1. The run sends it lines of JSON: what it has started (`add`) and what it has ended itself (`done`).
2. When the run's end of the pipe closes, whether the run ended, crashed or was killed, what is left is ended: processes
   by their own pid, and only if they are still the ones that were started (a pid can be used again); then mounts,
   network namespaces and control groups; folders last.
3. It has a session of its own, so that Ctrl-C reaches the run and not the reaper.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

KINDS = ("process", "mount", "netns", "cgroup", "folder")
"""In the order of their end."""


def started_at(pid: int) -> int | None:
    """When a process began, in the kernel's ticks: with the pid, its identity. None if there is none (or a zombie)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def end_process(pid: int, started: int) -> None:
    if started_at(pid) != started:
        return
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    for _ in range(500):
        if started_at(pid) != started:
            return
        time.sleep(0.01)


def sweep(pid: int) -> None:
    """Remove what libfaketime leaves in shared memory when its process is killed."""
    for left in (f"/dev/shm/faketime_shm_{pid}", f"/dev/shm/sem.faketime_sem_{pid}"):
        Path(left).unlink(missing_ok=True)


def end(kind: str, name: str, started: int) -> None:
    """End one thing. What is gone already is no error."""
    match kind:
        case "process":
            end_process(int(name), started)
            sweep(int(name))
        case "mount":
            subprocess.run(["umount", "-l", name], capture_output=True, check=False)
        case "netns":
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        case "cgroup":
            try:
                os.rmdir(name)
            except OSError:
                pass  # gone, or still with a process that is ending
        case "folder":
            shutil.rmtree(name, ignore_errors=True)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    kept: dict[tuple[str, str], int] = {}
    for line in sys.stdin:
        verb, kind, name, started = json.loads(line)
        if verb == "add":
            kept[kind, name] = started
        else:
            kept.pop((kind, name), None)
    for (kind, name), started in sorted(kept.items(), key=lambda item: KINDS.index(item[0][0])):
        end(kind, name, started)


if __name__ == "__main__":
    main()
