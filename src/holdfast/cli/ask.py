"""`holdfast ask NAME [TOKEN]`: ask the holders of a lock to give way."""

from __future__ import annotations

import click

from . import exit_codes
from .engine_choice import coordinator_for_viewing
from .options import engine_options, json_option, print_json


@click.command()
@click.argument("name")
@click.argument("token", type=click.IntRange(min=1), required=False)
@engine_options
@json_option
def ask(name: str, token: int | None, url: str | None, namespace: str, as_json: bool) -> int:
    """Ask the holders of NAME, or the one with TOKEN, to give way.

    Nothing is taken from anybody: each holder learns of it with its next renewal at the latest (`lease.asked`), and
    does as it sees fit. 'holdfast evict' ends a hold by force. Works on etcd and ZooKeeper.

    \b
    Examples:
      holdfast ask reports/nightly --url etcd://127.0.0.1:2379
      holdfast ask reports/nightly 4711 --json

    Exit code 1 if nobody holds it.
    """
    asked = 0
    if (locks := coordinator_for_viewing(url, namespace, as_json)) is not None:
        with locks:
            asked = locks.ask(name, token)
    if as_json:
        print_json({"name": name, "token": token, "asked": asked})
    elif asked:
        whom = "its holder" if asked == 1 else f"its {asked} holders"
        click.echo(f"asked {whom} to give way on {name!r}")
    else:
        with_token = "" if token is None else f" with token {token}"
        click.echo(f"nobody to ask: {name!r} is not held{with_token}", err=True)
    return exit_codes.OK if asked else exit_codes.FAILED
