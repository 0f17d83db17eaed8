"""What can be tortured, by its name."""

from __future__ import annotations

from .actor_run import ACTORS
from .log_run import LOG
from .once_run import ONCE
from .partition_run import PARTITIONS

WORKLOADS = {workload.name: workload for workload in (ONCE, ACTORS, PARTITIONS, LOG)}
