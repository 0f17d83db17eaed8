"""The keeper's threads: the watch, and the renewals beside it. Started when needed, ended with the coordinator.

A thousand leases have one thread of each kind; a renewal that hangs may have two more beside it (`RENEWERS`).
"""

from __future__ import annotations

import threading
import time

from .._core.calendar import Calendar
from .._core.renewal import Keeper
from ..observe.complaint import complain
from ..ports import Backend, Wire
from .driver import ThreadBell, run, spawn, start

LINGER = 60.0
"""For so many seconds a thread that renews waits for more: most leases are renewed more often than that."""


def thread_keeper(backend: Backend, wire: Wire) -> Keeper:
    """A keeper on one thread for all leases, and one for all renewals."""
    starting = threading.Lock()

    def launch(keeper: Keeper) -> None:
        with starting:
            if not keeper.launched:
                keeper.launched = start(lambda: watch(keeper), "holdfast-keeper")

    def watch(keeper: Keeper) -> None:
        """Nothing ends the watch but the end of the coordinator."""
        while not keeper.closed:
            try:
                run(keeper.watch(), wire)
            except BaseException:  # noqa: BLE001  whatever it was: there are leases to watch
                complain("the watch over leases was interrupted; it goes on")
                time.sleep(0.01)

    return Keeper(
        backend,
        Calendar(threading.Lock()),
        ThreadBell(),
        launch,
        lambda renewal: spawn(renewal, wire, "holdfast-renewal"),
        ThreadBell(),
        LINGER,
    )
