"""`holdfast refusals`: the stale tokens that fences have refused, as the fences have kept them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from ..settings import without_passwords
from . import exit_codes
from .engine_choice import announce_default_engine, chosen_url
from .options import SECONDS, debug_option, json_option, print_json, quiet_option
from .tables import show

if TYPE_CHECKING:
    from ..fenced.refusal import RefusalRecord

COLUMNS = ("resource", "refused", "time (UTC)", "token", "mark", "owner")


@click.command()
@click.argument("fences", nargs=-1, metavar="[FENCE]...")
@click.option("--prefix", default="", help="Only resources that begin with this.")
@click.option("--check", is_flag=True, help="Exit with 1 if anything was ever refused.")
@click.option("--request-timeout", type=SECONDS, default=5.0, show_default="5s", help="Give up a request after this.")
@debug_option
@json_option
@quiet_option
def refusals(
    fences: tuple[str, ...], prefix: str, check: bool, request_timeout: float, as_json: bool, quiet: bool
) -> int:
    """List the stale tokens that a FENCE has refused: how often, and the last of each resource, the newest first.

    A FENCE is named by what it stands in front of: the URL of the database with the fenced data (the one that your own
    client or connection uses), or the path of a fenced file, or of a folder with fenced files. Without one it is the
    engine: $HOLDFAST_URL, or a file of this user. It shows also what was refused to processes that are gone.

    \b
    Exit codes:
       0  the fences were read (with --check: and have refused nothing)
       1  with --check: something was refused
      64  not the name of a fence
      69  a fence could not be read

    \b
    Examples:
      holdfast refusals redis://127.0.0.1 --prefix orders/
      holdfast refusals sqlite:///srv/shop.db /srv/ledgers/
      holdfast refusals postgresql://shop@db/shop --json | jq '.[] | select(.count > 3)'
      holdfast refusals --check redis://127.0.0.1 || echo "somebody was stale"
    """
    from ..refusals.fence_view import kind_of, read_refusals  # not at the top: `holdfast run` needs no database

    if not fences:
        announce_default_engine(None, quiet or as_json)
    named = fences or (chosen_url(None),)
    for fence in named:
        kind_of(fence)
    found = [(without_passwords(fence), read_refusals(fence, prefix, request_timeout)) for fence in named]
    if as_json:
        print_json(
            [
                {"fence": shown, "kind": kind_of(fence), **asdict(record)}
                for fence, (shown, records) in zip(named, found, strict=True)
                for record in records
            ]
        )
    else:
        for shown, records in found:
            if records:
                rows = [row for record in records for row in _rows(record)]
                show(COLUMNS, rows, f"refused by the fence at {shown}", {"refused", "token", "mark"})
            elif not quiet:
                of = f" of resources that begin with {prefix!r}" if prefix else ""
                click.echo(f"the fence at {shown} has kept no refusal{of}", err=True)
    return exit_codes.FAILED if check and any(records for _, records in found) else exit_codes.OK


def _rows(record: RefusalRecord) -> list[tuple[str, ...]]:
    """A row for each refusal that was kept; the first one has the count."""
    return [
        (
            record.resource if not place else "",
            str(record.count) if not place else "",
            datetime.fromtimestamp(each.time, UTC).strftime("%Y-%m-%d %H:%M:%S"),
            str(each.token),
            "–" if each.mark is None else str(each.mark),
            each.owner or "–",
        )
        for place, each in enumerate(record.last)
    ]
