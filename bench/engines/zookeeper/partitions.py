"""holdfast's partitions, beside kazoo's `SetPartitioner` (`peer_set_partitioner`)."""

from __future__ import annotations

from bench import holdfast_tools

CONTENDERS = ()
PARTITIONS = (holdfast_tools.PARTITION,)
