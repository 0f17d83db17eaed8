"""The live table of a run: for each engine its progress, the accepted writes and the present fault."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..resource import FILE

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


@dataclass(slots=True)
class DisplayRow:
    """One engine."""

    state: str = "waits for its turn"
    since: float = 0.0
    faults: int = 0
    now: str = ""


class Display:
    """A table that is drawn anew a few times a second. Controllers call `watch`."""

    def __init__(self, schemes: Sequence[str], seconds: float, folder: Path) -> None:
        self._mutex = threading.Lock()
        self._rows = {scheme: DisplayRow() for scheme in schemes}
        self._seconds = seconds
        self._folder = folder

    def watch(self, scheme: str, what: str, target: str) -> None:
        with self._mutex:
            row = self._rows[scheme]
            if target:
                row.faults += 1
                row.now = f"{what} {target}"
            else:
                row.state, row.now = what, ""
                if what == "runs":
                    row.since = time.monotonic()

    def table(self) -> Table:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
        for column, side in (
            ("engine", "left"),
            ("", "left"),
            ("updates", "right"),
            ("faults", "right"),
            ("now", "left"),
        ):
            table.add_column(column, justify="right" if side == "right" else "left", no_wrap=True)
        with self._mutex:
            for scheme, row in self._rows.items():
                table.add_row(scheme, self._progress(row), str(self._updates(scheme)), str(row.faults), row.now)
        return table

    def __rich__(self) -> Table:
        return self.table()

    def _progress(self, row: DisplayRow) -> str:
        if row.state != "runs" or not self._seconds:
            return row.state
        passed = min(time.monotonic() - row.since, self._seconds)
        done = int(20 * passed / self._seconds)
        return f"{'━' * done}{'·' * (20 - done)} {passed:.0f}/{self._seconds:.0f} s"

    def _updates(self, scheme: str) -> int:
        """How many writes the resources have accepted so far."""
        count = 0
        for file in self._folder.glob(f"{scheme}/*/{FILE}"):
            try:
                with sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=0.05) as db:
                    count += db.execute("SELECT count(*) FROM log WHERE verb = 'write'").fetchone()[0]
                db.close()
            except sqlite3.Error:
                continue  # not there yet, or busy: the next look will tell
        return count


@contextmanager
def live_table(display: Display, console: Console) -> Iterator[None]:
    """Draw the table for the length of a `with`; at the end it is erased."""
    from rich.live import Live

    with Live(display, console=console, refresh_per_second=2, transient=True):
        yield
