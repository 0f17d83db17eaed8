"""The same as `zookeeper`, with data on the disk and forced to it before each reply, as it runs by default."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.engines import zookeeper
from bench.model import Target
from tests.zookeeper.ensemble import running


@contextmanager
def start(folder: Path) -> Iterator[Target]:
    with running(tick=zookeeper.TICK_MS, forced=True, base=str(folder)) as ensemble:
        yield Target(url=f"zookeeper://127.0.0.1:{ensemble.leader.port}", folder=folder)


ENGINE = replace(zookeeper.ENGINE, name="zookeeper_disk", start=start)
