"""The reference engine, in one process. It has no figure to meet: it shows what the core costs by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.model import Engine, Layout, Target


@contextmanager
def start(folder: Path) -> Iterator[Target]:
    yield Target(url=f"memory://{folder.name}", folder=folder)


ENGINE = Engine(name="memory", start=start, layouts=(Layout(1, 8), Layout(1, 64)), own=("metered",))
