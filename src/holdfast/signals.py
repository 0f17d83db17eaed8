"""A signal that ends a program ends it as an exception does: `with` blocks are left, and locks are released.

Python ends at once on SIGTERM, without leaving any block, and what it held stays locked until its ttl is over. This
turns the signal into `SystemExit` on the main thread. Bodies end, coordinators are closed, and the exit code is the one
that a shell expects: 128 and the number of the signal.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

from .errors import Misconfigured


def release_on_signals(*numbers: int) -> None:
    """Have these signals (SIGTERM and SIGHUP, if none is named) end the program cleanly. For the main thread.

    Call it once, at the start. A signal that is ignored stays ignored, as under `nohup`.

    >>> import signal
    >>> before = signal.getsignal(signal.SIGTERM)
    >>> release_on_signals(signal.SIGTERM)
    >>> _ = signal.signal(signal.SIGTERM, before)
    """
    if threading.current_thread() is not threading.main_thread():
        raise Misconfigured(
            "release_on_signals() sets handlers of signals, which only the main thread can do; call it there"
        )
    for number in numbers or (signal.SIGTERM, signal.SIGHUP):
        try:
            present = signal.getsignal(number)
            if present in (signal.SIG_DFL, _end):
                signal.signal(number, _end)
            elif present is not signal.SIG_IGN:
                raise Misconfigured(
                    f"{signal.Signals(number).name} has a handler already, {present!r}; have it raise SystemExit, "
                    "which leaves every `with` block, instead of calling release_on_signals()"
                )
        except Misconfigured:
            raise
        except (ValueError, TypeError, OSError) as error:
            raise Misconfigured(f"{number!r} is not a signal that can be handled: {error}") from error


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
