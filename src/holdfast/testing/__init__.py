"""For tests: the contract that every engine keeps, a clock that you move, leases with the token you want, and an
engine that is out of reach (docs/testing.md).

A backend of your own is tested in three lines (see `contract`), without pytest being imported here:

    import holdfast.testing

    class TestMine(holdfast.testing.Contract):
        url = "mine://localhost:7777"
"""

from __future__ import annotations

import warnings
from typing import Any

from .clock import FakeClock
from .context import BODIES, Body, Context
from .contract import Contract, run_promise
from .engine_under_test import EngineUnderTest, memory_engine_under_test
from .fakes import aio_connect_faulty, aio_granted, connect_faulty, granted, lose, memory_engine
from .faults import Fault, FaultInjector, Interrupted
from .promise import Promise, contract_promises, promise
from .proxy import Network

__all__ = [
    "BODIES",
    "Body",
    "Context",
    "Contract",
    "EngineUnderTest",
    "FakeClock",
    "Fault",
    "FaultInjector",
    "Interrupted",
    "Network",
    "Promise",
    "aio_connect_faulty",
    "aio_granted",
    "connect_faulty",
    "contract_promises",
    "granted",
    "lose",
    "memory_engine",
    "memory_engine_under_test",
    "promise",
    "run_promise",
]

RENAMED = {
    "Stage": "Context",
    "Trouble": "FaultInjector",
    "Venue": "EngineUnderTest",
    "memory_venue": "memory_engine_under_test",
    "play": "run_promise",
}
"""Names of earlier versions; each still works, with a warning."""


def __getattr__(name: str) -> Any:
    if name not in RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"holdfast.testing.{name} is now called {RENAMED[name]}", DeprecationWarning, stacklevel=2)
    return globals()[RENAMED[name]]
