"""Small commands to run under a lock. Each tells on stdout what a test must know before it goes on."""

from __future__ import annotations

import sys


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


WAIT = ["sh", "-c", "echo ready; exec sleep 60"]
"""Ends when it is told to."""

STUBBORN = python(
    "import os, signal, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('ready', flush=True)\n"
    "while True:\n"
    "    time.sleep(0.002)\n"
    "    print(time.clock_gettime(time.CLOCK_BOOTTIME), flush=True)\n"
)
"""Goes on whatever it is told, and says when."""

STAMP = python("import time; print(time.clock_gettime(time.CLOCK_BOOTTIME), flush=True)")


def echo_signals(*names: str) -> list[str]:
    """Tells of each signal that it gets, and ends on SIGTERM with 0 if that is not among them."""
    return python(
        "import signal, sys\n"
        f"for name in {names!r}:\n"
        "    signal.signal(getattr(signal, name), lambda n, _: print(signal.Signals(n).name, flush=True))\n"
        "print('ready', flush=True)\n"
        "while True: signal.pause()\n"
    )


WITH_GRANDCHILD = ["sh", "-c", "sleep 60 & echo $!; wait"]
"""Tells the pid of its child, and waits for it."""

WITH_STRAY = python(
    "import subprocess, time\n"
    "child = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
    "print(child.pid, flush=True)\n"
    "time.sleep(60)\n"
)
"""Its child is in a session of its own, out of reach of a signal to the group."""
