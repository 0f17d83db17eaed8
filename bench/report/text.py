"""Figures as text, and a table as aligned plain text for the terminal or as Markdown."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its title and a sentence on how to read it."""

    title: str
    note: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    texts: int = 1
    """So many columns, from the left, hold text."""


def time(seconds: float) -> str:
    """Three digits, in the unit that suits."""
    if math.isnan(seconds):
        return "–"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def ratio(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def percent(part: float) -> str:
    return "–" if math.isnan(part) else f"{part * 100:.1f} %" if part < 0.0995 else f"{part * 100:.0f} %"


def size(count: float) -> str:
    """Bytes: three digits, in the unit that suits."""
    for unit, bytes_ in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(count) >= bytes_:
            return f"{count / bytes_:.3g} {unit}"
    return f"{count:.0f} B"


def plain(table: Table) -> str:
    """Columns aligned for a terminal."""
    lines = [table.head, *table.rows]
    widths = [max(_width(line[at]) for line in lines) for at in range(len(table.head))]
    drawn = []
    for line in lines:
        cells = [_pad(cell, widths[at], left=at < table.texts) for at, cell in enumerate(line)]
        drawn.append("  ".join(cells).rstrip())
    drawn.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([table.title, table.note, "", *drawn, ""])


def markdown(table: Table) -> str:
    rule = ["---" if at < table.texts else "---:" for at in range(len(table.head))]
    lines = [table.head, tuple(rule), *table.rows]
    drawn = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([f"## {table.title}", "", table.note, "", *drawn, ""])


def _width(text: str) -> int:
    return sum(not unicodedata.combining(letter) for letter in text)


def _pad(text: str, width: int, left: bool) -> str:
    space = " " * (width - _width(text))
    return text + space if left else space + text
