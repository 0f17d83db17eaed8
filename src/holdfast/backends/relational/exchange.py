"""How a talk is held: a generator that yields words to say and is sent the replies, or thrown what was refused."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

from ..._core.flow import Flow
from .error_mapping import Refused

R = TypeVar("R")
G = TypeVar("G")


def run_exchange(talk: Generator[bytes, R, G], say: Callable[[bytes], Flow[R]]) -> Flow[G]:
    """Have the talk; what it comes to."""
    try:
        words = next(talk)
        while True:
            try:
                reply = yield from say(words)
            except Refused as error:
                words = talk.throw(error)
            else:
                words = talk.send(reply)
    except StopIteration as stop:
        outcome: G = stop.value
        return outcome
