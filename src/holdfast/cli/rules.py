"""`holdfast rules`: alerts for Prometheus."""

from __future__ import annotations

import click

from ..observe.rules import PENDING, WINDOW
from ..observe.rules import rules as text_of_rules


@click.command()
@click.option("--window", default=WINDOW, show_default=True, metavar="T", help="Over how long rates are taken.")
@click.option("--pending", default=PENDING, show_default=True, metavar="T", help="How long a condition must hold.")
def rules(window: str, pending: str) -> None:
    """Print alert rules for a Prometheus that scrapes programs with holdfast's exporter.

    Their limits are those of 'locks.stats()': waiting above half a ttl, 30 % not granted at once, holds above 80 % of
    the ttl, 5 % that give up, and every refusal at a fence. Each alert names its page in docs/runbooks.

    \b
    Examples:
      holdfast rules > /etc/prometheus/rules/holdfast.yml
      holdfast rules --window 15m --pending 10m
    """
    click.echo(text_of_rules(window, pending), nl=False)
