"""The engine's clock jumps, forward or back, and returns.

1. The jump is many ttls long, and short enough that it is over soon: tokens that were minted in the future are passed
   by the true clock within JUMP seconds. Until then the engine must not forget (see `model`): its next token would lie
   below one that it has given out. `scenarios/plays/forgets_and_goes_back` shows what happens if it does.
2. Of several nodes all jump together, or one alone.
"""

from __future__ import annotations

import time

from ..arena import Node
from ..arena.clock import Clock, library
from ..arena.site import NotHere
from ..engines import Engine
from .model import JUMP, Kind, Stage


def _clocks(stage: Stage) -> tuple[str, list[Clock]]:
    assert stage.engine is not None
    nodes = [node for node in stage.engine.nodes if node.clock is not None]
    chosen: list[Node] = nodes if stage.chance.random() < 0.5 else [stage.chance.choice(nodes)]
    target = "engine" if len(chosen) > 1 else f"node:{chosen[0].name}"
    return target, [node.clock for node in chosen if node.clock is not None]


def _jump(stage: Stage, fault: str, seconds: float) -> None:
    target, clocks = _clocks(stage)
    with stage.during(fault, target):
        for clock in clocks:
            clock.move(seconds)
        try:
            stage.last(2 * stage.ttl, 6 * stage.ttl)
        finally:
            stage.ahead_until = max(stage.ahead_until, time.time() + max(0.0, seconds) + 0.1)
            for clock in clocks:
                clock.move(0.0)
            time.sleep(stage.ttl)  # the return is a jump as well: what was promised before it may be over after it


def forward(stage: Stage) -> None:
    _jump(stage, "clock-forward", stage.chance.uniform(1, JUMP))


def back(stage: Stage) -> None:
    _jump(stage, "clock-back", -stage.chance.uniform(1, JUMP))


def _no_clock(engine: Engine) -> str:
    try:
        library()
    except NotHere as error:
        return str(error)
    return "" if any(node.clock for node in engine.nodes) else "its servers were started without a clock of their own"


KINDS = (
    Kind("clock-forward", "the server's clock jumps forward, and returns", "engine", forward, _no_clock),
    Kind("clock-back", "the server's clock jumps back, and returns", "engine", back, _no_clock, sets_back=True),
)
