"""Real faults, by name. A fault that an engine or this machine cannot suffer says why, and is listed as not run."""

from __future__ import annotations

from ...errors import Misconfigured
from . import client_side, clocks, failover, machine, network, nodes
from .model import Kind, Stage

KINDS: tuple[Kind, ...] = (
    *client_side.KINDS,
    *nodes.KINDS,
    *network.KINDS,
    *clocks.KINDS,
    *failover.KINDS,
    *machine.KINDS,
)
BY_NAME = {kind.name: kind for kind in KINDS}


def chosen(names: str | None) -> list[Kind]:
    """The kinds of a list with commas; all without one."""
    if names is None or names == "all":
        return list(KINDS)
    kinds = []
    for name in names.split(","):
        if name.strip() not in BY_NAME:
            raise Misconfigured(f"there is no fault {name.strip()!r}; there are: {', '.join(BY_NAME)}")
        kinds.append(BY_NAME[name.strip()])
    return kinds


__all__ = ["BY_NAME", "KINDS", "Kind", "Stage", "chosen"]
