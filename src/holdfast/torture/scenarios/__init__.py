"""The classic failures by name, each run on a real engine in seconds: without a fence, and with one."""

from __future__ import annotations

from importlib import import_module

from ...errors import Misconfigured
from .model import Scenario, ScenarioOutcome, ScenarioResult

_FILES = (
    "gc_pause", "clock_jump", "clock_back", "partition_holder", "failover_async", "restart_amnesia", "lost_reply",
    "session_expiry", "foreign_release", "crossed_order", "herd", "forgets_and_goes_back",
)  # fmt: skip
NAMES = tuple(file.replace("_", "-") for file in _FILES)


def scenario(name: str) -> Scenario:
    if name not in NAMES:
        raise Misconfigured(f"there is no scenario {name!r}; there are: {', '.join(NAMES)}, or all")
    found: Scenario = import_module(f"{__name__}.catalog.{name.replace('-', '_')}").SCENARIO
    return found


def chosen(names: str) -> list[Scenario]:
    """The scenarios of a list with commas, or all."""
    return [scenario(name.strip()) for name in (NAMES if names == "all" else names.split(","))]


__all__ = ["NAMES", "Scenario", "ScenarioOutcome", "ScenarioResult", "chosen", "scenario"]
