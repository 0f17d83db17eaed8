"""The embedded engine: a SQLite file. Its peers are locks on files, for processes of one machine.

Commands are counted without asking anybody: the header of the WAL index (the `-shm` file, memory shared by
all processes) holds a counter that every committed write transaction moves by one. Reads are not counted.
Only a process without a connection of its own may look: closing the file would drop the POSIX locks that
SQLite holds on it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import verdicts
from bench.model import Engine, Layout, Target

CHANGE_COUNTER_OFFSET_BYTES = 8
"""Offset of `iChange` in the WAL index header (version, unused, iChange, …), in native byte order."""


@contextmanager
def start(folder: Path) -> Iterator[Target]:
    yield Target(url=f"sqlite:///{folder / 'holdfast.db'}", folder=folder)


def commits(target: Target) -> int:
    """Write transactions of the run's open databases. Differences count, while the databases stay open."""
    total = 0
    for index in target.folder.glob("*.db-shm"):
        with index.open("rb") as file:
            file.seek(CHANGE_COUNTER_OFFSET_BYTES)
            raw = file.read(4)
        total += struct.unpack("=I", raw)[0] if len(raw) == 4 else 0
    return total


PROCESSES = Layout(processes=8, threads=1)
ENGINE = Engine(
    name="sqlite",
    start=start,
    best_peers=("filelock",),
    layouts=(Layout(1, 8), Layout(1, 64), PROCESSES),
    commands=commits,
    command="transactions",
    limits=(
        verdicts.pair_at_most(1.7),
        verdicts.gap_no_worse(PROCESSES, hold=0.005),
        verdicts.gap_tail_better(PROCESSES, hold=0.005),
        verdicts.share_at_least(0.8, PROCESSES, hold=0.0),
        verdicts.rate_at_least(0.1, PROCESSES, hold=0.0),
    ),
)
