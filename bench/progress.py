"""Progress on stderr: one line for each step, with the seconds since the start. The report alone goes to
stdout.
"""

from __future__ import annotations

import sys
import time

_STARTED = time.monotonic()
_quiet = False


def quiet() -> None:
    """Say no more (for tests)."""
    global _quiet
    _quiet = True


def say(line: str) -> None:
    if not _quiet:
        print(f"[{time.monotonic() - _STARTED:6.1f} s] {line}", file=sys.stderr, flush=True)
