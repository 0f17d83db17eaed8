"""`holdfast board`: a board for Grafana."""

from __future__ import annotations

import json

import click

from ..observe.board import board as the_board


@click.command()
def board() -> None:
    """Print a board for Grafana: the five figures with their limits, and what stands behind them.

    Import it (Dashboards, New, Import); Grafana asks for the Prometheus that scrapes your programs.

    \b
    Example:
      holdfast board > holdfast-board.json
    """
    click.echo(json.dumps(the_board(), indent=2))
