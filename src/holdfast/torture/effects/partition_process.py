"""One process that is a member of a partition and writes to its shards, and strikes itself at the worst moment.

That is between the check of a shard's lease and the write: until then the lease was good, and then it may be another's.
A worker writes down when it was about to check, if the check then said that the lease was good: at that moment it has
owned the shard, in good faith.
"""

from __future__ import annotations

from contextlib import closing

from ... import Coordinator, Lease, Partitions
from ...clock import now
from ...errors import BackendUnavailable, FenceRejected, LeaseLost, NotAcquired
from .ledger import EffectLedger
from .worker import WorkerContext, worker_context

SHARDS_COUNT = 12
NAME = "shards"
IDLE_PAUSE_S = 0.02
STOPS_AFTER_RATIO = 0.005


class PartitionProcess:
    """A member."""

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self._path = context.folder / "ledger.db"

    def work(self, locks: Coordinator) -> None:
        context = self._context
        partitions = locks.partitions(
            NAME, shards=SHARDS_COUNT, ttl=context.config.ttl, on_assigned=self._start, on_revoking=self._drain
        )
        with partitions, closing(EffectLedger(self._path)) as ledger:
            while not context.ending.is_set():
                if owned := list(partitions):
                    self._use(partitions, context.chance.choice(owned), ledger)
                context.ending.wait(context.chance.random() * IDLE_PAUSE_S)

    def _use(self, partitions: Partitions, shard: int, ledger: EffectLedger) -> None:
        try:
            with partitions.using(shard) as lease:
                self._write("completed", shard, lease, ledger)
        except NotAcquired:
            self._context.tell("moved", str(shard))

    def _start(self, shard: int, lease: Lease) -> None:
        """`on_assigned`: claim the fence before anything else, so that a former owner writes no more."""
        with closing(EffectLedger(self._path)) as ledger:
            self._write("assigned", shard, lease, ledger)

    def _drain(self, shard: int, deadline: float) -> None:
        """`on_revoking`: somebody else is to have it."""
        self._context.tell("revoked", str(shard))

    def _write(self, what: str, shard: int, lease: Lease, ledger: EffectLedger) -> None:
        context, key, at = self._context, str(shard), now()
        try:
            lease.check()
            context.strike("checked")
            ledger.append(key, lease.token, context.name, context.config.fenced)
            context.tell(what, key, lease.token, at)
            context.strike("written", STOPS_AFTER_RATIO)
        except FenceRejected:
            context.tell("refused", key, lease.token, at)
        except (LeaseLost, BackendUnavailable) as error:
            context.tell("failed", key, type(error).__name__)


if __name__ == "__main__":
    context = worker_context()
    context.run(PartitionProcess(context).work)
