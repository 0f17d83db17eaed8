"""`holdfast once ls|show|forget`: what is remembered of work that is to be done once."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import click

from .. import Coordinator
from ..recipes.once_record import AttemptView
from ..settings import without_passwords
from ..sync.once import Once
from . import exit_codes
from .engine_choice import chosen_url, coordinator_for_viewing
from .options import engine_options, json_option, print_json
from .tables import printable
from .tables import show as show_table

COLUMNS = ("key", "state", "attempts", "token", "phases", "host", "pid", "began (UTC)", "error")


@click.group()
def once() -> None:
    """Look at what is remembered of work that is done once (locks.once), and forget it.

    \b
    States: running, dead (its process is gone: it may have done its work or not), done, failed, ended (may be retried).
    """


def _once(locks: Coordinator, name: str) -> Once:
    return locks.once(name, keep="1d", takeover="refuse")


@once.command()
@click.argument("name")
@click.option("--after", default="", metavar="KEY", help="Begin behind this key.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 1000), help="How many to list.")
@engine_options
@json_option
def ls(name: str, after: str, limit: int, url: str | None, namespace: str, as_json: bool) -> None:
    """List the attempts of the once NAME, in the order of their keys.

    \b
    Examples:
      holdfast once ls payments
      holdfast once ls payments --json | jq '.[] | select(.state == "dead")'
    """
    found: list[AttemptView] = []
    if (locks := coordinator_for_viewing(url, namespace, as_json)) is not None:
        with locks:
            found = _once(locks, name).attempts(after, limit)
    if as_json:
        print_json([_data(view) for view in found])
    elif not found:
        behind = f" behind {after!r}" if after else ""
        click.echo(f"nothing is remembered of {name!r}{behind} at {without_passwords(chosen_url(url))}", err=True)
    else:
        show_table(COLUMNS, [_row(view) for view in found], f"attempts of {name}", {"attempts", "token", "pid"})
        if len(found) == limit:
            click.echo(f"there may be more: --after {found[-1].key!r}", err=True)


@once.command()
@click.argument("name")
@click.argument("key")
@engine_options
@json_option
def show(name: str, key: str, url: str | None, namespace: str, as_json: bool) -> int:
    """Show what is remembered of KEY of the once NAME: its state, phases, result. Exit code 1 if there is nothing."""
    view = None
    if (locks := coordinator_for_viewing(url, namespace, as_json)) is not None:
        with locks:
            view = _once(locks, name).look(key)
    if as_json:
        print_json(None if view is None else _data(view))
    elif view is None:
        click.echo(f"nothing is remembered of {key!r} of {name!r}", err=True)
    else:
        for field, value in _data(view).items():
            click.echo(f"{field:>8}  {printable(str(value))}")
    return exit_codes.FAILED if view is None else exit_codes.OK


@once.command()
@click.argument("name")
@click.argument("key")
@click.option("--token", type=click.IntRange(min=1), help="Only the attempt with this token.")
@engine_options
@json_option
def forget(name: str, key: str, token: int | None, url: str | None, namespace: str, as_json: bool) -> int:
    """Forget what is remembered of KEY of the once NAME: the next attempt does the work again. Nothing is asked.

    Find out first what a dead attempt has done. One that is alive after all is refused when it completes; --token makes
    sure that no newer attempt is forgotten by mistake. Exit code 1 if there was nothing to forget.
    """
    found = False
    if (locks := coordinator_for_viewing(url, namespace, as_json)) is not None:
        with locks:
            found = _once(locks, name).forget(key, token)
    if as_json:
        print_json({"name": name, "key": key, "forgotten": found})
    elif found:
        click.echo(f"forgot {key!r} of {name!r}: the next attempt does the work again")
    else:
        which = "" if token is None else f" with token {token}"
        click.echo(f"nothing to forget: there is no attempt of {key!r} of {name!r}{which}", err=True)
    return exit_codes.OK if found else exit_codes.FAILED


def _data(view: AttemptView) -> dict[str, Any]:
    return asdict(view) | {"result": view.result.decode(errors="replace")}


def _row(view: AttemptView) -> tuple[str, ...]:
    began = datetime.fromtimestamp(view.began, UTC).strftime("%Y-%m-%d %H:%M:%S")
    phases = ", ".join(view.phases) or "–"
    return (
        view.key, view.state, str(view.number), str(view.token), phases, view.host, str(view.pid), began, view.error
    )  # fmt: skip
