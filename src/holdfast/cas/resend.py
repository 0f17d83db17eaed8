"""A write that compares a version, whose reply may be lost: sent once more, which settles all but one case.

1. The second one is carried out: the first was not, and never will be, since it compares the same version.
2. The second one meets another version: it may be the one that the first has made. Not known.
3. The second one has no reply either, or is refused: not known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .._core.backoff import pause
from ..errors import HoldfastError, OutcomeUnknown
from .update import Step

T = TypeVar("T")


def send_twice(send: Callable[[], Step[T | None]], refused: Callable[[Exception], bool], where: str) -> Step[T | None]:
    """What the write answered; None: the version was another, and nothing was changed.

    `refused` tells of an error whether it means that nothing was done; such a one is raised as it is.
    """
    try:
        return (yield from send())
    except HoldfastError:
        raise
    except Exception as error:
        if refused(error):
            raise
        lost = error
    yield from pause(1)
    try:
        answer = yield from send()
    except Exception as error:
        raise unknown(where, error) from error  # also a refusal: was the newer claim before the first one, or after it?
    if answer is None:
        raise unknown(where, lost) from lost
    return answer


def unknown(where: str, why: object) -> OutcomeUnknown:
    """The error to raise."""
    return OutcomeUnknown(
        f"whether {where} was written is not known: {str(why) or repr(why)}; it was at most once. Read it and decide"
    )
