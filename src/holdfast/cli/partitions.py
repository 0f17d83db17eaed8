"""`holdfast partitions ls` and `watch`: members, their weights and what they own, and what nobody owns."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Iterable
from datetime import datetime

import click

from .. import connect
from ..model import LockView
from ..settings import without_passwords
from . import partition_views, views
from .engine_choice import chosen_url, coordinator_for_viewing
from .options import SECONDS, engine_options, json_option, print_json, quiet_option
from .watch import Look, looks, print_line


@click.group()
def partitions() -> None:
    """Look at partitions: who is a member, and who owns which shard.

    \b
    Examples:
      holdfast partitions ls
      holdfast partitions watch ingest
    """


@partitions.command()
@click.argument("prefix", default="")
@engine_options
@json_option
@quiet_option
def ls(prefix: str, url: str | None, namespace: str, as_json: bool, quiet: bool) -> None:
    """List the partitions whose name begins with PREFIX: a line per member, and one for what nobody owns.

    A member that is 'leaving' owns shards and is no member any more: it drains them, or has died and its ttl is not
    over yet.

    \b
    Examples:
      holdfast partitions ls
      holdfast partitions ls --json ingest | jq '.[].unowned'
    """
    found: list[LockView] = []
    if (locks := coordinator_for_viewing(url, namespace, quiet or as_json)) is not None:
        with locks:
            found = locks.survey(prefix)
    rows = list(partition_views.rows(found, prefix))
    engine = without_passwords(chosen_url(url))
    if as_json:
        print_json(partition_views.as_data(rows))
    elif not rows:
        if not quiet:
            where = f" with a name that begins with {prefix!r}" if prefix else ""
            click.echo(f"no partition{where} has a member at {engine}", err=True)
    elif sys.stdout.isatty():
        views.console().print(partition_views.table(rows, None if quiet else f"partitions at {engine}"))
    else:
        if not quiet:
            click.echo(f"partitions at {engine}", err=True)
        click.echo(partition_views.plain(rows))


@partitions.command()
@click.argument("prefix", default="")
@click.option("--interval", type=SECONDS, default=1.0, show_default=True, help="Time between two surveys.")
@engine_options
@json_option
@quiet_option
def watch(prefix: str, interval: float, url: str | None, namespace: str, as_json: bool, quiet: bool) -> None:
    """Watch the partitions whose name begins with PREFIX, until Ctrl-C.

    On a terminal: a table that keeps itself up to date. Elsewhere: a line for each change of a member. With --json: a
    line of JSON for each change, with the whole picture.

    \b
    Examples:
      holdfast partitions watch
      holdfast partitions watch --interval 200ms ingest
    """
    over = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: over.set())
    locks = coordinator_for_viewing(url, namespace, quiet or as_json) or connect(chosen_url(url), namespace=namespace)
    with locks:
        seen = looks(locks, prefix, max(0.05, interval), over)
        if as_json:
            _print_pictures(seen, prefix)
        elif sys.stdout.isatty():
            _draw(seen, chosen_url(url), prefix)
        else:
            _print_changes(seen, prefix)


def _draw(seen: Iterable[Look], url: str, prefix: str) -> None:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    with Live(console=views.console(), auto_refresh=False, screen=True) as live:
        for found, problem in seen:
            rows = list(partition_views.rows(found, prefix))
            head = Text.assemble(
                ("holdfast ", "bold"),
                (f"{without_passwords(url)}  {prefix}", "dim"),
                f"\n{datetime.now():%H:%M:%S}   {sum(row.kind == 'member' for row in rows)} members, "
                f"{sum(len(row.owned) for row in rows if row.kind == 'unowned')} shards unowned",
            )
            body = Text(problem, style="bold red") if problem else partition_views.table(rows)
            live.update(Group(head, body, Text("Ctrl-C ends it", style="dim")), refresh=True)


def _print_changes(seen: Iterable[Look], prefix: str) -> None:
    known: dict[tuple[str, str], str] = {}
    silence = ""
    for found, problem in seen:
        if problem != silence:
            print_line("engine", problem or "reachable again")
            silence = problem
        if problem:
            continue
        current = {}
        for row in partition_views.rows(found, prefix):
            who = f"{row.member} {row.claim.host}:{row.claim.pid}" if row.claim is not None else "nobody"
            kind = "" if row.kind != "leaving" else " (leaving)"
            current[row.partition, who] = f"owns {len(row.owned)} of {row.shards}{kind}"
        for key, state in current.items():
            if known.get(key) != state:
                print_line(*key, state)
        for key in known.keys() - current.keys():
            print_line(*key, "gone" if key[1] != "nobody" else "owns none")
        known = current


def _print_pictures(seen: Iterable[Look], prefix: str) -> None:
    before: object = None
    for found, problem in seen:
        rows = list(partition_views.rows(found, prefix))
        shape = (problem, [(row.partition, row.shards, row.kind, row.member, row.owned) for row in rows])
        if shape != before:
            before = shape
            picture = {"at": time.time(), "partitions": partition_views.as_data(rows), "problem": problem or None}
            click.echo(json.dumps(picture, ensure_ascii=False))
            sys.stdout.flush()
