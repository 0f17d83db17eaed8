"""`holdfast evict NAME TOKEN`: break a lock by hand."""

from __future__ import annotations

import click

from . import exit_codes
from .engine_choice import coordinator_for_viewing
from .options import engine_options, json_option, print_json


@click.command()
@click.argument("name")
@click.argument("token", type=click.IntRange(min=1))
@engine_options
@json_option
def evict(name: str, token: int, url: str | None, namespace: str, as_json: bool) -> int:
    """End the hold on NAME that has TOKEN (see 'holdfast ls'). Nothing is asked.

    The next in line is granted at once. The evicted holder learns of it at its next renewal, and may still be at work
    until then: only a fence keeps its late writes out. The token makes sure that no newer holder is evicted by mistake.

    \b
    Examples:
      holdfast evict orders/99999 1754040000000000
      holdfast ls --json orders/99999 | jq '.[].holders[].token'

    Exit code 1 if there was no such hold.
    """
    found = False
    if (locks := coordinator_for_viewing(url, namespace, as_json)) is not None:
        with locks:
            found = locks.evict(name, token)
    if as_json:
        print_json({"name": name, "token": token, "evicted": found})
    elif found:
        click.echo(f"evicted token {token} from {name!r}; its holder learns of it at its next renewal")
    else:
        click.echo(f"nothing to evict: token {token} does not hold {name!r} (any more)", err=True)
    return exit_codes.OK if found else exit_codes.FAILED
