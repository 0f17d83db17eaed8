"""How much time a request has left, and what is told when it was not enough."""

from __future__ import annotations

import math

from .... import clock
from ....errors import OutcomeUnknown

STEP_S = 1 / 64


def left(end: float) -> float:
    """What is left of a request's time, in whole steps: another timeout for each read would be a system call more.

    A step at least, in which what has come can be read.
    """
    return max(1, math.ceil((end - clock.now()) / STEP_S)) * STEP_S


def no_answer(timeout: float, error: OSError) -> OutcomeUnknown:
    if isinstance(error, TimeoutError | BlockingIOError):
        return OutcomeUnknown(f"Redis did not answer within {timeout:g} s; the request may have been carried out")
    return OutcomeUnknown(
        f"the connection to Redis was lost before the reply ({error}); the request may have been carried out"
    )
