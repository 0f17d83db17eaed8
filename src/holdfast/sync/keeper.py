"""The keeper's threads: the watch, and the renewals beside it. Started when needed, ended with the coordinator.

A thousand leases have one thread of each kind; a renewal that hangs may have two more beside it (`RENEWER_COUNT`).
"""

from __future__ import annotations

import threading
import time
from collections import deque

from .._core.renewal import Keeper
from .._core.renewal_schedule import RenewalSchedule
from ..observe.log_exception import log_exception
from ..ports import AnyBackend, AnyWire, Wire
from .driver import run, spawn, start
from .events import ThreadEvent

_abandoned: deque[AnyWire] = deque()
"""Wires of coordinators that were dropped without `close()`, until somebody has the time to close them."""


def abandon(wire: AnyWire, keeper: Keeper) -> None:
    """A coordinator is gone: have its threads end and its wire closed. The garbage collector calls, and cannot wait:
    the keeper's thread does it, or else whoever connects next."""
    _abandoned.append(wire)
    keeper.close()


def close_abandoned() -> None:
    while _abandoned:
        try:
            _abandoned.popleft().close()
        except Exception:  # noqa: BLE001  nobody is left who could do anything about it
            log_exception("a connection that was left open could not be closed")


LINGER_S = 60.0
"""For so many seconds a thread that renews waits for more: most leases are renewed more often than that."""


def thread_keeper(backend: AnyBackend, wire: Wire[object, object]) -> Keeper:
    """A keeper on one thread for all leases, and one for all renewals."""
    starting = threading.Lock()

    def launch(keeper: Keeper) -> None:
        with starting:
            if not keeper.launched:
                keeper.launched = start(lambda: watch(keeper), "holdfast-keeper")

    def watch(keeper: Keeper) -> None:
        """Nothing ends the watch but the end of the coordinator; one that was dropped ends here."""
        while not keeper.closed:
            try:
                run(keeper.watch(), wire)
            except BaseException:  # noqa: BLE001  whatever it was: there are leases to watch
                log_exception("the watch over leases was interrupted; it goes on")
                time.sleep(0.01)
        close_abandoned()

    return Keeper(
        backend,
        RenewalSchedule(threading.Lock()),
        ThreadEvent(),
        launch,
        lambda renewal: spawn(renewal, wire, "holdfast-renewal"),
        ThreadEvent(),
        LINGER_S,
    )
