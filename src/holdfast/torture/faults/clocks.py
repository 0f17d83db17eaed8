"""The engine's clock jumps, forward or back, and returns.

1. The jump is many ttls long, and short enough that it is over soon: tokens that were minted in the future are passed
   by the true clock within `CLOCK_JUMP_S`. Until then the engine must not lose its data (see `model`): its next token
   would be below one that it has granted. `scenarios/catalog/forgets_and_goes_back` shows what happens if it does.
2. Of several nodes all jump together, or one alone.
"""

from __future__ import annotations

import time

from ..engines import TorturedEngine
from ..sandbox import ServerNode
from ..sandbox.clock import Clock, library
from ..sandbox.sandbox import NotAvailable
from .model import CLOCK_JUMP_S, FaultContext, FaultKind


def _clocks(context: FaultContext) -> tuple[str, list[Clock]]:
    assert context.engine is not None
    nodes = [node for node in context.engine.nodes if node.clock is not None]
    chosen: list[ServerNode] = nodes if context.chance.random() < 0.5 else [context.chance.choice(nodes)]
    target = "engine" if len(chosen) > 1 else f"node:{chosen[0].name}"
    return target, [node.clock for node in chosen if node.clock is not None]


def _jump(context: FaultContext, fault: str, seconds: float) -> None:
    target, clocks = _clocks(context)
    with context.during(fault, target):
        for clock in clocks:
            clock.move(seconds)
        try:
            context.last(2 * context.ttl, 6 * context.ttl)
        finally:
            context.ahead_until = max(context.ahead_until, time.time() + max(0.0, seconds) + 0.1)
            for clock in clocks:
                clock.move(0.0)
            time.sleep(context.ttl)  # the return is a jump as well: a lease granted before it may have expired after it


def forward(context: FaultContext) -> None:
    _jump(context, "clock-forward", context.chance.uniform(1, CLOCK_JUMP_S))


def back(context: FaultContext) -> None:
    _jump(context, "clock-back", -context.chance.uniform(1, CLOCK_JUMP_S))


def _no_clock(engine: TorturedEngine) -> str:
    try:
        library()
    except NotAvailable as error:
        return str(error)
    return "" if any(node.clock for node in engine.nodes) else "its servers were started without a clock of their own"


KINDS = (
    FaultKind("clock-forward", "the server's clock jumps forward, and returns", "engine", forward, _no_clock),
    FaultKind("clock-back", "the server's clock jumps back, and returns", "engine", back, _no_clock, sets_back=True),
)
