"""A disk that is slow or hangs: each flush of a server (fsync, fdatasync) is delayed by strace, and nothing else is.

1. The server goes on reading, answering and counting time: that is what makes a hanging disk worse than a dead server.
2. When strace ends, it detaches from the server, and what was delayed goes on.
3. It works for servers that are linked statically, too (etcd), where a preloaded library would not.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from .environment import environment
from .loopback import eventually
from .sandbox import DidNotStart, Sandbox
from .server import ServerNode

ATTACH_TIMEOUT_S = 10.0


@cache
def why_not() -> str:
    """Why this machine cannot do it; empty if it can."""
    program = shutil.which("strace")
    if program is None:
        return "strace is not installed (Debian: strace)"
    tried = subprocess.run([program, "-o", "/dev/null", "true"], capture_output=True, check=False, env=environment())
    return "" if tried.returncode == 0 else "strace may not trace processes here"


@contextmanager
def slow_disk(sandbox: Sandbox, node: ServerNode, delay_s: float) -> Iterator[None]:
    """Delay every flush of this node for the length of a `with`."""
    delay = f"inject=fsync,fdatasync:delay_enter={int(delay_s * 1e6)}"
    words = ["strace", "-f", "-p", str(node.pid), "-e", "trace=fsync,fdatasync", "-e", delay]
    story = node.folder / "strace"
    with story.open("wb") as file:
        tracer = sandbox.spawn(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        if not eventually(lambda: b"attached" in story.read_bytes(), ATTACH_TIMEOUT_S):
            raise DidNotStart(f"strace did not attach to {node.name}: {story.read_text(errors='replace')[-300:]}")
        yield
    finally:
        tracer.send_signal(signal.SIGTERM)
        try:
            tracer.wait(ATTACH_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            pass  # the sandbox ends it
        sandbox.end(tracer)
