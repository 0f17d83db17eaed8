"""Real faults, by name. What an engine or this machine does not support is listed as not run, with the reason."""

from __future__ import annotations

from ...errors import Misconfigured
from . import clients, clocks, failover, machine, network, nodes
from .model import FaultContext, FaultKind

KINDS: tuple[FaultKind, ...] = (
    *clients.KINDS,
    *nodes.KINDS,
    *network.KINDS,
    *clocks.KINDS,
    *failover.KINDS,
    *machine.KINDS,
)
BY_NAME = {kind.name: kind for kind in KINDS}


def chosen(names: str | None) -> list[FaultKind]:
    """The kinds of a list with commas; all without one."""
    if names is None or names == "all":
        return list(KINDS)
    kinds = []
    for name in names.split(","):
        if name.strip() not in BY_NAME:
            raise Misconfigured(f"there is no fault {name.strip()!r}; there are: {', '.join(BY_NAME)}")
        kinds.append(BY_NAME[name.strip()])
    return kinds


__all__ = ["BY_NAME", "KINDS", "FaultContext", "FaultKind", "chosen"]
