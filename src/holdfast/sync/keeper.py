"""The keeper's thread: started with the first lease, ended with the coordinator."""

from __future__ import annotations

import threading

from .._core.calendar import Calendar
from .._core.renewal import Keeper
from ..ports import Backend, Wire
from .driver import ThreadBell, spawn


def thread_keeper(backend: Backend, wire: Wire) -> Keeper:
    """A keeper on one thread for all leases."""
    starting = threading.Lock()

    def launch(keeper: Keeper) -> None:
        with starting:
            if not keeper.launched:
                keeper.launched = spawn(keeper.keep(), wire, "holdfast-keeper")

    return Keeper(backend, Calendar(threading.Lock()), ThreadBell(), launch)
