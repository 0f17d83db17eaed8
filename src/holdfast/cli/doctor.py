"""`holdfast doctor`: what in the engine's settings, or on this machine, breaks locks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from .engine_choice import announce_default_engine, chosen_url, sqlite_file
from .options import SECONDS, debug_option, json_option, print_json, quiet_option

if TYPE_CHECKING:
    from ..doctor import Report

MARKS = {"fine": "✓", "warning": "!", "failed": "✗", "could not look": "?"}
COLOURS = {"fine": "green", "warning": "yellow", "failed": "red", "could not look": "magenta"}


@click.command()
@click.argument("url", required=False)
@click.option("--url", "option", metavar="URL", help="The same as the argument.")
@click.option(
    "--experiment/--no-experiment",
    default=True,
    show_default=True,
    help="Measure round trips and hand-offs, and stop a holder, for some seconds, on names of its own.",
)
@click.option("--strict", is_flag=True, help="Exit with 2 for anything that is not fine.")
@click.option("--all", "show_all", is_flag=True, help="Show also why what is fine matters.")
@click.option("--request-timeout", type=SECONDS, default=5.0, show_default="5s", help="Give up a request after this.")
@debug_option
@json_option
@quiet_option
def doctor(
    url: str | None,
    option: str | None,
    experiment: bool,
    strict: bool,
    show_all: bool,
    request_timeout: float,
    as_json: bool,
    quiet: bool,
) -> int:
    """Look at the settings of an engine, and say which of them break locks.

    URL is the engine, as elsewhere: $HOLDFAST_URL, or a file of this user, if it is not given. No setting is changed.
    Then it experiments for some seconds, on names of its own, and proposes a ttl, a margin and a request_timeout;
    --no-experiment only reads.

    \b
    Exit codes:
       0  everything is fine
       1  warnings: locks break in a fault (a restart, a fail-over)
       2  failed: locks break in use, or cannot be used
       3  something could not be looked at
      64  the URL is not one

    \b
    Examples:
      holdfast doctor redis://127.0.0.1
      holdfast doctor redis://127.0.0.1 --no-experiment
      holdfast doctor --strict --json | jq '.findings[] | select(.outcome != "fine")'
    """
    from ..doctor import examine

    if url is not None and option is not None:
        raise click.UsageError("the URL is given twice; give it once")
    named = url if url is not None else option
    announce_default_engine(named, quiet or as_json)
    chosen = chosen_url(named)
    silent = quiet or as_json or not sys.stderr.isatty()

    def say(doing: str) -> None:
        if not silent:
            click.echo(f"\r\x1b[2K{doing} …", nl=False, err=True)

    try:
        report = examine(chosen, request_timeout=request_timeout, experiments=experiment, say=say)
    finally:
        if not silent:
            click.echo("\r\x1b[2K", nl=False, err=True)
    if as_json:
        print_json(report.as_data())
    else:
        for line in _lines(report, show_all, sqlite_file(chosen) is not None):
            click.echo(line)
    return report.exit_code(strict)


def _lines(report: Report, show_all: bool, embedded: bool) -> Iterator[str]:
    yield f"{'file' if embedded else 'engine'}: {report.url}"
    for each in report.findings:
        word = each.outcome.word
        mark = click.style(MARKS[word], fg=COLOURS[word], bold=True)
        where = f" ({each.where})" if each.where else ""
        yield f"{mark} {each.title}{where}: {each.seen}  {click.style(each.id, dim=True)}"
        if word != "fine" or show_all:
            yield f"    why: {each.why}"
        if word != "fine":
            yield f"    do:  {each.remedy}"
    if report.proposals:
        yield "proposed settings, from what was measured:"
        for proposal in report.proposals:
            yield f"    {proposal.name} = {proposal.seconds:g}  ({proposal.why})"
    counts = [(word, sum(each.outcome.word == word for each in report.findings)) for word in MARKS]
    yield ", ".join(f"{count} {word}" for word, count in counts if count)
