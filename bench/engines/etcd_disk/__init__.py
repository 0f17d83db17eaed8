"""The same as `etcd`, with data on the disk and a write to it before each reply, as it runs by default."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.engines import etcd
from bench.model import Target
from tests.etcd.cluster import running


@contextmanager
def start(folder: Path) -> Iterator[Target]:
    with running(fsync=True, under=str(folder)) as cluster:
        leader = cluster.leader()
        order = [leader, *(member for member in cluster.members if member is not leader)]
        yield Target(url=cluster.url_of(*order), folder=folder)


ENGINE = replace(etcd.ENGINE, name="etcd_disk", start=start)
