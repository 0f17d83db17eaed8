"""The keeper's task: started with the first lease, ended with the coordinator."""

from __future__ import annotations

from contextlib import nullcontext

from .._core.calendar import Calendar
from .._core.renewal import Keeper
from ..ports import AsyncWire, Backend
from .driver import TaskBell, spawn


def task_keeper(backend: Backend, wire: AsyncWire) -> Keeper:
    """A keeper in one task for all leases."""

    def launch(keeper: Keeper) -> None:
        keeper.launched = True
        spawn(keeper.keep(), wire, "holdfast-keeper")

    return Keeper(backend, Calendar(nullcontext()), TaskBell(), launch)
