"""A claim as others see it, from what its key tells."""

from __future__ import annotations

from dataclasses import dataclass

from ...model import ClaimView
from .queue import Standing


@dataclass(frozen=True, slots=True)
class HolderDetails:
    """Who made a claim, as its data tells it."""

    host: str
    pid: int
    actor: str
    mode: str


def claim_view(
    entry: Standing,
    holder: HolderDetails,
    token: int | None,
    since_s: float,
    now_s: float,
    remaining_s: float,
    capacity: int = 1,
    live: bool = True,
) -> ClaimView:
    """`token`: None for one that waits. `capacity`: the weight of what takes all. `live`: its holder is there."""
    return ClaimView(
        owner=entry.owner,
        token=token,
        weight=entry.weight or capacity,
        host=holder.host,
        pid=holder.pid,
        since=since_s,
        remaining=remaining_s,
        actor=holder.actor,
        mode=holder.mode,
        live=live,
        age=max(0.0, now_s - since_s),
    )
