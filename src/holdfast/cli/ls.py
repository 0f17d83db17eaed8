"""`holdfast ls`: who holds what, and who waits."""

from __future__ import annotations

import sys

import click

from ..model import LockView
from ..settings import without_passwords
from . import views
from .engine_choice import chosen_url, coordinator_for_viewing
from .options import engine_options, json_option, print_json, quiet_option


@click.command()
@click.argument("prefix", default="")
@click.option("--exact", is_flag=True, help="Only the name that is PREFIX: one read, however many names there are.")
@engine_options
@json_option
@quiet_option
def ls(prefix: str, exact: bool, url: str | None, namespace: str, as_json: bool, quiet: bool) -> None:
    """List the locks whose name begins with PREFIX: holders first, then waiters in their order.

    'age' is for how long it has been held, or waited for; 'remaining' for how long the engine keeps the claim without
    another request from its owner: a live holder renews long before that. 'closed' is a hold that has ended and keeps
    the name locked for a while. 'unrecovered': its last holder did not end cleanly ('mode' says how), and nobody has
    put right yet what it left (docs/recovery.md).

    \b
    Examples:
      holdfast ls
      holdfast ls orders/
      holdfast ls --exact orders/7
      holdfast ls --json | jq '.[] | select(.waiters != [])'
    """
    if exact and not prefix:
        raise click.UsageError("--exact needs the name of a lock, as in: holdfast ls --exact orders/7")
    found: list[LockView] = []
    if (locks := coordinator_for_viewing(url, namespace, quiet or as_json)) is not None:
        with locks:
            found = locks.survey(prefix, exact=exact)
    engine = without_passwords(chosen_url(url))
    if as_json:
        print_json(views.as_data(found))
    elif not found:
        where = f" with the name {prefix!r}" if exact else f" with a name that begins with {prefix!r}" if prefix else ""
        if not quiet:
            click.echo(f"no lock{where} is held or waited for at {engine}", err=True)
    elif sys.stdout.isatty():
        views.console().print(views.table(views.rows(found), None if quiet else f"locks at {engine}"))
    else:
        if not quiet:
            click.echo(f"locks at {engine}", err=True)
        click.echo(views.plain(views.rows(found)))
