"""`holdfast ls`: who holds what, and who waits."""

from __future__ import annotations

import sys

import click

from . import views
from .common import coordinator, engine_options, json_option, print_json


@click.command()
@click.argument("prefix", default="")
@engine_options
@json_option
def ls(prefix: str, url: str | None, namespace: str, as_json: bool) -> None:
    """List the locks whose name begins with PREFIX: holders first, then waiters in their order.

    'age' is for how long it has been held, or waited for; 'remaining' for how long the engine keeps the claim without
    another word from its owner: a live holder renews long before that. 'closed' is a hold that has ended and keeps the
    name closed for a while.

    \b
    Examples:
      holdfast ls
      holdfast ls orders/
      holdfast ls --json | jq '.[] | select(.waiters != [])'
    """
    with coordinator(url, namespace) as locks:
        found = list(locks.survey(prefix))
    if as_json:
        print_json(views.as_data(found))
    elif not found:
        where = f" with a name that begins with {prefix!r}" if prefix else ""
        click.echo(f"no lock is held or waited for{where}", err=True)
    elif sys.stdout.isatty():
        views.console().print(views.table(views.rows(found)))
    else:
        click.echo(views.plain(views.rows(found)))
