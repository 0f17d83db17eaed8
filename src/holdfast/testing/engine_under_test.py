"""An engine that is ready to be tested, and what can be done with it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass

from ..backends import open_engine
from ..ports import AnyEngine
from .fakes import memory_engine

OpenEngine = Callable[[str, str, float], AnyEngine]


@dataclass(frozen=True, slots=True)
class EngineUnderTest:
    """An engine by its URL. Every promise runs in a namespace of its own, so one engine serves them all."""

    url: str
    open: OpenEngine = open_engine
    """Makes an engine from (url, namespace, request_timeout); an engine object of your own comes in here."""
    own_clock: bool = False
    """The engine lives in this process and reads `holdfast.clock`: with asyncio, promises run in virtual time."""
    many_processes: bool = True
    """Other processes reach the same engine by the URL."""
    network: bool = True
    """It is reached by TCP, and the URL says host:port for every server, so that a proxy can be put in between."""


_numbers = itertools.count(1)


def memory_engine_under_test() -> EngineUnderTest:
    """The reference engine, one for each namespace, on the clock that is installed."""
    engines: dict[str, AnyEngine] = {}

    def open_memory(url: str, namespace: str, request_timeout: float) -> AnyEngine:
        if namespace not in engines:
            engines[namespace] = memory_engine(url, request_timeout)
        return engines[namespace]

    url = f"memory://{os.getpid()}.{next(_numbers)}"
    return EngineUnderTest(url, open_memory, own_clock=True, many_processes=False, network=False)
