"""`holdfast watch`: the same as `ls`, live; on a pipe, a line for each change.

While the engine is out of reach that is shown, and it is asked again: a watcher wants to see it return.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from datetime import datetime

import click

from .. import Coordinator, connect
from ..errors import BackendUnavailable
from ..model import LockView
from ..settings import without_passwords
from . import views
from .engine_choice import chosen_url, coordinator_for_viewing
from .options import SECONDS, engine_options, json_option, quiet_option

Look = tuple[list[LockView], str]
"""What a survey showed, or why there was none."""


@click.command()
@click.argument("prefix", default="")
@click.option("--interval", type=SECONDS, default=1.0, show_default=True, help="Time between two surveys.")
@engine_options
@json_option
@quiet_option
def watch(prefix: str, interval: float, url: str | None, namespace: str, as_json: bool, quiet: bool) -> None:
    """Watch the locks whose name begins with PREFIX, until Ctrl-C.

    On a terminal: a table that keeps itself up to date. Elsewhere: a line for each change (holds, waits, gone). With
    --json: a line of JSON for each change, with the whole picture.

    \b
    Examples:
      holdfast watch
      holdfast watch --interval 200ms orders/
      holdfast watch | tee locks.log
    """
    over = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: over.set())
    locks = coordinator_for_viewing(url, namespace, quiet or as_json) or connect(chosen_url(url), namespace=namespace)
    with locks:
        seen = looks(locks, prefix, max(0.05, interval), over)
        if as_json:
            _print_pictures(seen)
        elif sys.stdout.isatty():
            _draw(seen, chosen_url(url), prefix)
        else:
            _print_changes(seen)


def looks(locks: Coordinator, prefix: str, interval: float, over: threading.Event) -> Iterator[Look]:
    """A survey every so often, until it is over."""
    while not over.is_set():
        began = time.monotonic()
        try:
            yield list(locks.survey(prefix)), ""
        except BackendUnavailable as error:
            yield [], str(error)
        over.wait(max(0.0, began + interval - time.monotonic()))


def _draw(looks: Iterable[Look], url: str, prefix: str) -> None:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    with Live(console=views.console(), auto_refresh=False, screen=True) as live:
        for found, problem in looks:
            rows = list(views.rows(found))
            holding = sum(row.state == "holds" for row in rows)
            parts: list[object] = [
                Text.assemble(
                    ("holdfast ", "bold"),
                    (f"{without_passwords(url)}  {prefix}", "dim"),
                    f"\n{datetime.now():%H:%M:%S}   {len(found)} names, {holding} held, {len(rows) - holding} waiting",
                )
            ]
            if problem:
                parts.append(Text(problem, style="bold red"))
            elif rows:
                parts.append(views.table(rows))
            else:
                parts.append(Text("\nno lock is held or waited for", style="dim"))
            parts.append(Text("Ctrl-C ends it", style="dim"))
            live.update(Group(*parts), refresh=True)  # type: ignore[arg-type]


def _print_changes(looks: Iterable[Look]) -> None:
    known: dict[tuple[str, str], tuple[str, ...]] = {}
    silence = ""
    for found, problem in looks:
        if problem != silence:
            print_line("engine", problem or "reachable again")
            silence = problem
        if problem:
            continue
        current = {}
        for row in views.rows(found):
            token = () if row.token == "–" else (f"token {row.token}",)
            current[row.name, row.owner] = (row.state, *token, f"{row.host}:{row.pid}")
        for key, state in current.items():
            if known.get(key) != state:
                print_line(key[0], *state)
        for key in known.keys() - current.keys():
            print_line(key[0], "gone", *known[key][1:])
        known = current


def _print_pictures(looks: Iterable[Look]) -> None:
    before: object = None
    for found, problem in looks:
        shape = (problem, [[(c.owner, c.token) for c in (*v.holders, *v.waiters)] for v in found])
        if shape != before:
            before = shape
            picture = {"at": time.time(), "locks": views.as_data(found), "problem": problem or None}
            click.echo(json.dumps(picture, ensure_ascii=False))
            sys.stdout.flush()


def print_line(*words: str) -> None:
    """A change, with the time."""
    click.echo("  ".join((f"{datetime.now():%H:%M:%S.%f}"[:-3], *words)))
    sys.stdout.flush()
