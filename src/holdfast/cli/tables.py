"""Tables of text: for a person at a terminal, and aligned columns for a pipe."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

import click

from . import views


def show(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str, right: Collection[str] = ()) -> None:
    """Print rows under their columns; the title goes to stderr where the table is piped."""
    rows = [[printable(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        click.echo(title, err=True)
        click.echo(views.aligned(columns, right, rows))
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))  # text, never markup: a key may hold brackets
    views.console().print(grid)


def printable(text: str) -> str:
    """On one line, and without what a terminal would take for a command: an error may say anything."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
