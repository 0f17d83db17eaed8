"""Pauses the garbage collector while a history is read or judged.

A history is hundreds of thousands of objects, none of them garbage: searching them costs a third of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Disable the garbage collector for the length of a `with`, if it was enabled."""
    worked = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if worked:
            gc.enable()
