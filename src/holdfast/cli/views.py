"""What a survey shows, as rows: one for each claim, holders before waiters, in the order of the line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ..model import SHARED_CAPACITY, ClaimView, LockView

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

COLUMNS = ("name", "state", "mode", "token", "age", "remaining", "host", "pid")
STYLES = {"holds": "green", "closed": "red", "unrecovered": "red"}
RIGHT = frozenset({"token", "age", "remaining", "pid"})


@dataclass(frozen=True, slots=True)
class ViewRow:
    """One claim."""

    name: str
    state: str
    mode: str
    token: str
    age: str
    remaining: str
    host: str
    pid: str
    owner: str

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.name, self.state, self.mode, self.token, self.age, self.remaining, self.host, self.pid)


def rows(views: Iterable[LockView]) -> Iterator[ViewRow]:
    for view in views:
        if (left := view.unrecovered) is not None:
            yield ViewRow(view.name, "unrecovered", left.ended, str(left.token), "–", "–", "–", "–", left.owner)
        for claim in view.holders:
            yield _row(view, claim, "holds" if claim.live else "closed")
        for place, claim in enumerate(view.waiters, 1):
            yield _row(view, claim, f"waits {place}")


def _row(view: LockView, claim: ClaimView, state: str) -> ViewRow:
    return ViewRow(
        view.name,
        state,
        _mode(view, claim),
        "–" if claim.token is None else str(claim.token),
        seconds(claim.age),
        seconds(claim.remaining),
        claim.host,
        str(claim.pid),
        claim.owner,
    )


def _mode(view: LockView, claim: ClaimView) -> str:
    if view.capacity in (1, SHARED_CAPACITY):
        return claim.mode
    return f"{claim.weight} of {view.capacity}"


def seconds(value: float) -> str:
    """Short and readable: 0.8 s, 12 s, 3 m 20 s, 2 h 5 m."""
    if value < 10:
        return f"{value:.1f} s"
    whole = int(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} m"


def as_data(views: Iterable[LockView]) -> list[dict[str, Any]]:
    return [asdict(view) for view in views]


def table(found: Iterable[ViewRow], title: str | None = None) -> Table:
    """For a person. Cells are text, never markup: a name may hold brackets."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, header_style="bold")
    for column in COLUMNS:
        keep = column in ("state", "token", "age", "remaining", "pid")
        grid.add_column(column, justify="right" if column in RIGHT else "left", no_wrap=keep, overflow="fold")
    for row in found:
        cells = [Text(cell) for cell in row.cells]
        cells[1].stylize(STYLES.get(row.state, "yellow"))
        grid.add_row(*cells)
    return grid


def plain(found: Iterable[ViewRow]) -> str:
    """For a pipe."""
    return aligned(COLUMNS, RIGHT, (row.cells for row in found))


def aligned(columns: Sequence[str], right: Collection[str], cells: Iterable[Sequence[str]]) -> str:
    """A table as plain text: aligned columns, nothing cut off."""
    lines = [columns, *cells]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(columns, line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def console(stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False, stderr=stderr)
