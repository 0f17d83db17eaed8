"""One process of `partition_group`: a member that works on its shards behind a fence, and logs what it does.

`python -m bench.partition_member URL SHARDS TTL LOG DATA FENCED`. SIGTERM is a clean end. SIGUSR1: it stops (SIGSTOP)
between the read and the write of all its shards; when it is woken, it writes with the tokens that it had.
"""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import holdfast
from holdfast.clock import now
from holdfast.errors import BackendUnavailable, FenceRejected, NotAcquired
from holdfast.fenced import SQLiteFence

WRITE_PAUSE_S = 0.25


class GroupProcess:
    """What the process does with its shards."""

    def __init__(self, log: str, data: str, fenced: bool) -> None:
        self._log = open(log, "a", buffering=1)  # noqa: SIM115  for as long as the process lives
        self._data = data
        self._fenced = fenced
        """False plants a bug: nothing checks the token."""
        self._leases: dict[int, holdfast.Lease] = {}
        self.over = threading.Event()
        self.struck = threading.Event()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._data, timeout=60, isolation_level=None)

    @contextmanager
    def _transaction(self, data: sqlite3.Connection, lease: holdfast.Lease) -> Iterator[None]:
        if self._fenced:
            with SQLiteFence(data).transaction(lease.name, lease):
                yield
            return
        data.execute("BEGIN IMMEDIATE")
        yield
        data.execute("COMMIT")

    def tell(self, what: str, shard: int = -1, token: int = 0) -> None:
        """One line of the log."""
        self._log.write(json.dumps([now(), what, shard, token]) + "\n")

    def start(self, shard: int, lease: holdfast.Lease) -> None:
        """`on_assigned`: claim the fence before anything is read, so that a former owner writes no more."""
        with closing(self._connect()) as data, self._transaction(data, lease):
            data.execute("SELECT value FROM number WHERE shard = ?", (shard,)).fetchall()
        lease.check()  # that may have taken long, and the shard may have moved on
        self._leases[shard] = lease
        self.tell("start", shard, lease.token)

    def end(self, shard: int, deadline: float) -> None:
        """`on_revoking`."""
        time.sleep(random.random() * 0.02)
        if (lease := self._leases.pop(shard, None)) is not None:  # else it was lost meanwhile
            self.tell("end", shard, lease.token)

    def lose(self, shard: int, lease: holdfast.Lease) -> None:
        """`on_lost`."""
        if self._leases.get(shard) is lease:  # else it had ended its work on it before
            del self._leases[shard]
            self.tell("lost", shard, lease.token)

    def work(self, partitions: holdfast.Partitions) -> None:
        """Add one to a shard's number now and then, behind the fence."""
        data = self._connect()
        while not self.over.is_set():
            if self.struck.is_set():
                self.struck.clear()
                self._write_late(data)
            owned = list(partitions)
            try:
                if owned:
                    with partitions.using(random.choice(owned)) as lease:
                        self._add(data, lease)
            except (NotAcquired, FenceRejected, BackendUnavailable):
                pass  # it has moved
            self.over.wait(WRITE_PAUSE_S * (0.5 + random.random()))

    def _add(self, data: sqlite3.Connection, lease: holdfast.Lease) -> None:
        shard = int(lease.name.rpartition("/")[2])
        with self._transaction(data, lease):
            ((value,),) = data.execute("SELECT value FROM number WHERE shard = ?", (shard,)).fetchall()
            data.execute("UPDATE number SET value = ? WHERE shard = ?", (value + 1, shard))
        self.tell("added", shard, lease.token)

    def _write_late(self, data: sqlite3.Connection) -> None:
        leases = list(self._leases.values())
        self.tell("stopped")
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # `os.kill` may return before this thread stops
        for lease in leases:
            shard = int(lease.name.rpartition("/")[2])
            try:
                self._add(data, lease)
            except FenceRejected:
                self.tell("refused", shard, lease.token)
            else:
                self.tell("accepted", shard, lease.token)
        self.tell("late")


def main(url: str, shards: str, ttl: str, log: str, data: str, fenced: str) -> None:
    """Be a member until a signal comes."""
    process = GroupProcess(log, data, fenced == "fenced")
    signal.signal(signal.SIGTERM, lambda *_: process.over.set())
    signal.signal(signal.SIGUSR1, lambda *_: process.struck.set())
    with holdfast.connect(url, ttl=float(ttl), request_timeout=30) as locks:
        partitions = locks.partitions(
            "group", shards=int(shards), on_assigned=process.start, on_revoking=process.end, on_lost=process.lose
        )
        worker = threading.Thread(target=process.work, args=(partitions,))
        worker.start()
        process.tell("joins")
        partitions.run(process.over)
        worker.join()
    process.tell("left")


if __name__ == "__main__":
    main(*sys.argv[1:])
