"""Interrupts this thread (Ctrl-C, a signal that raises) at a chosen moment.

Python runs signal handlers when a function begins and when one that is written in C returns: it is raised there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


class Interrupt(BaseException):
    """Like `KeyboardInterrupt`, and nobody else's."""


def strikes(moment: int, work: Callable[[], object], kind: type[BaseException] = Interrupt) -> bool:
    """Interrupt this thread's work at this moment. False if it was over before."""
    count = 0

    def look(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        if event in ("call", "c_return") and "holdfast/" in frame.f_code.co_filename:
            count += 1
            if count == moment:
                sys.setprofile(None)
                raise kind

    try:
        sys.setprofile(look)
        work()
    except kind:
        return True
    finally:
        sys.setprofile(None)
    return count >= moment
