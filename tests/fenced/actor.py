"""A process that adds one to a ledger, once per line it is given, and can be paused at named points.

    python -m tests.fenced.actor        <- {kind} {token} {path}
                                        -> at born | at read | at checked | acked | refused | busy

At a point it says where it is and stops itself (SIGSTOP), as a hypervisor would stop it; SIGCONT
wakes it. It never learns that it was paused.
"""

from __future__ import annotations

import os
import signal
import sys

from holdfast.errors import BackendUnavailable, FenceRejected
from tests.fenced.ledgers import LEDGERS


def point(name: str) -> None:
    print("at", name, flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)


def update(kind: str, token: int, path: str) -> str:
    ledger = LEDGERS[kind](path, token, point)
    point("born")
    try:
        value = ledger.fetch()
        point("read")
        ledger.store(value + 1)
    except FenceRejected:
        return "refused"
    except BackendUnavailable:
        return "busy"
    return "acked"


def main() -> None:
    move = os.replace

    def pause_and_move(old: str, new: str) -> None:
        point("checked")  # between the check and the replacement of a fenced file, which has no hook for us
        move(old, new)

    os.replace = pause_and_move  # type: ignore[assignment]
    for line in sys.stdin:
        kind, token, path = line.rstrip("\n").split(" ", 2)
        print(update(kind, int(token), path), flush=True)


if __name__ == "__main__":
    main()
