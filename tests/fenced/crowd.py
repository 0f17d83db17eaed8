"""A process that adds to a ledger as often and as fast as it can, each time as a new holder; says how often it was
acknowledged.

    python -m tests.fenced.crowd KIND PATH RANK TIMES        three ranks, 0 to 2
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from holdfast.errors import BackendUnavailable, FenceRejected
from tests.fenced import ledgers

CROWD = 3


def main(kind: str, path: str, rank: str, times: str) -> None:
    ledgers.patience = 30.0
    print("ready", flush=True)
    sys.stdin.readline()
    acked = 0
    for _ in range(int(times)):
        token = time.monotonic_ns() * CROWD + int(rank)  # one clock for all processes, and no token twice
        ledger = ledgers.LEDGERS[kind](path, token, lambda _: None)
        try:
            ledger.store(ledger.fetch() + 1)
        except (FenceRejected, BackendUnavailable):
            continue
        acked += 1
    print(acked)


def crowd(kind: str, path: str, times: int) -> list[int]:
    """Let them all in at once; how often each was acknowledged."""
    root = Path(__file__).parent.parent.parent
    with ExitStack() as stack:
        members = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "tests.fenced.crowd", kind, path, str(rank), str(times)],
                    cwd=root,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for rank in range(CROWD)
        ]
        for member in members:
            assert member.stdout is not None
            assert member.stdout.readline() == "ready\n"
        for member in members:
            assert member.stdin is not None
            print(file=member.stdin, flush=True)
        return [int(member.communicate(timeout=60)[0]) for member in members]


if __name__ == "__main__":
    main(*sys.argv[1:])
