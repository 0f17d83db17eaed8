"""`holdfast advise`, the command."""

from __future__ import annotations

from typing import BinaryIO

import click

from ..options import debug_option, json_option, namespace_option


@click.command("advise")
@click.option(
    "--answers",
    "file",
    type=click.File("rb"),
    metavar="FILE",
    help="Answers as a JSON object; - is stdin. Nothing is asked.",
)
@click.option("--p99", metavar="T", help="How long the work takes but for 1 in 100: 0.4, 400ms, 90s.")
@click.option("--conflicts", metavar="N", help="How many percent of the updates conflict: 29, 29%, or a rate: 0.29.")
@click.option("--url", metavar="URL", help="Ask this engine what it promises, and measure it.")
@click.option("--markdown", is_flag=True, help="Print the whole tree as a page, with a drawing.")
@namespace_option
@debug_option
@json_option
def advise_command(
    file: BinaryIO | None,
    p99: str | None,
    conflicts: str | None,
    url: str | None,
    markdown: bool,
    namespace: str,
    as_json: bool,
) -> int:
    """Do you need a lock at all? Answer a few questions, and see what to use.

    It says what to use, why, what that does not protect from, with which settings, and shows the code. Questions take
    a number or a word; ? says why it is asked, b goes back, q ends it.

    \b
    Examples:
      holdfast advise
      holdfast advise --p99 400ms --url redis://127.0.0.1
      holdfast advise --conflicts 29
      holdfast advise --answers answers.json --json
    """
    from .session import hold_session

    return hold_session(file, {"p99": p99, "conflicts": conflicts}, url, namespace, markdown, as_json)
