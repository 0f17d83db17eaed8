"""What blocks, and cannot be bounded, is done on a thread of its own, and left behind at a deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

from ..clock import now as clock

T = TypeVar("T")


def on_a_thread(do: Callable[[], T], deadline: float, late: str) -> T:
    """What `do` returns or raises; `TimeoutError(late)` at the deadline."""
    done: SimpleQueue[Callable[[], T]] = SimpleQueue()

    def run() -> None:
        try:
            result = do()
        except BaseException as error:  # noqa: BLE001  raised where it was asked for
            failure = error

            def fail() -> T:
                raise failure

            done.put(fail)
        else:
            done.put(lambda: result)

    try:
        threading.Thread(target=run, name="holdfast-connect", daemon=True).start()
    except RuntimeError:  # too many threads, or the interpreter is ending: better without a bound than not at all
        run()
    try:
        outcome = done.get(timeout=max(0.0, deadline - clock()))
    except Empty:
        raise TimeoutError(late) from None
    return outcome()
