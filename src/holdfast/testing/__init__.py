"""For tests: the contract that every engine keeps, a clock that you move, and leases with the token you want.

A backend of your own is tested in three lines (see `contract`), without pytest being imported here:

    import holdfast.testing

    class TestMine(holdfast.testing.Contract):
        url = "mine://localhost:7777"
"""

from __future__ import annotations

from .clock import FakeClock
from .contract import Contract, play
from .fakes import aio_granted, granted, lose, memory_engine
from .promise import Promise, contract_promises, promise
from .proxy import Network
from .stage import BODIES, Body, Stage
from .trouble import Fault, Interrupted, Trouble
from .venue import Venue, memory_venue

__all__ = [
    "BODIES",
    "Body",
    "Contract",
    "FakeClock",
    "Fault",
    "Interrupted",
    "Network",
    "Promise",
    "Stage",
    "Trouble",
    "Venue",
    "aio_granted",
    "contract_promises",
    "granted",
    "lose",
    "memory_engine",
    "memory_venue",
    "play",
    "promise",
]
