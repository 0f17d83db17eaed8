"""The reentrant lock: an actor that holds the name may acquire it again; the last release frees it.

The depth is counted on this side only: the engine sees one claim, with one token.
"""

from __future__ import annotations

from .._core.coordinator_core import CoordinatorCore
from .._core.deadlock import LOOSE
from .._core.flow import NOW, Flow
from .._core.lease import Hold
from ..model import LockSpec


def reenter(
    core: CoordinatorCore, spec: LockSpec, timeout: float | None, actor: str, task: object = None
) -> Flow[Hold]:
    """The hold that this actor already has, one deeper; or a new one. `task`: which of those that run in its thread."""
    key = (spec.name, actor.removeprefix(LOOSE), task)
    hold = core.reentered.get(key)
    if hold is not None and hold.over((yield NOW)) is None:
        hold.depth += 1
        return hold
    hold = yield from core.obtain(spec, timeout, actor)
    core.reentered[key] = hold
    hold.key = key
    return hold
