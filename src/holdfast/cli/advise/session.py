"""One call of `holdfast advise`: the answers, the walk through the tree, and the advice. Imported when it is called."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

import click

from ...errors import Misconfigured
from .. import exit_codes
from ..engine_choice import coordinator_for_viewing
from ..options import print_json
from .advice import Advice, advise, as_data
from .engine_report import EngineReport, look_at
from .interview import Quit, interview, read_line
from .page import page
from .text import advice_lines
from .tree import DecisionTree, the_tree
from .walk import BadAnswer, Given, Walk, allowed, check, walk

MAX_ANSWERS_BYTES = 1 << 20


def hold_session(
    file: BinaryIO | None,
    options: dict[str, str | None],
    url: str | None,
    namespace: str,
    markdown: bool,
    as_json: bool,
) -> int:
    """Ask what is not answered by the file or the options, and print the advice. Answers with the exit code."""
    tree = the_tree()
    if markdown:
        click.echo(page(tree), nl=False)
        return exit_codes.OK
    given = _given(tree, file, options)
    report = None if url is None else _look(url, namespace)
    try:
        walked = _walk(tree, given, None if report is None else report.p50, ask=file is None)
    except Quit:
        click.echo("no advice", err=True)
        return exit_codes.FAILED
    except KeyboardInterrupt:
        click.echo("\nno advice", err=True)
        raise
    _print(tree, advise(tree, walked, report), as_json)
    return exit_codes.OK


def _given(tree: DecisionTree, file: BinaryIO | None, options: dict[str, str | None]) -> dict[str, Given]:
    """The answers of the file and of the options, checked; an option is stronger."""
    given = {} if file is None else _parse(file.read(MAX_ANSWERS_BYTES + 1))
    given |= {name: value for name, value in options.items() if value is not None}
    check(tree, given)
    return given


def _parse(text: bytes) -> dict[str, Given]:
    if len(text) > MAX_ANSWERS_BYTES:
        raise BadAnswer(f"the answers are longer than {MAX_ANSWERS_BYTES} bytes; give one JSON object")
    try:
        data = json.loads(text, object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"the answers are no JSON: {error}") from error
    if not isinstance(data, dict):
        raise BadAnswer('the answers are one JSON object, question to answer, as in {"need": "once"}')
    return data


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadAnswer(f"a question is answered twice: {', '.join(name for name, _ in pairs)}")
    return found


def _look(url: str, namespace: str) -> EngineReport:
    locks = coordinator_for_viewing(url, namespace, quiet=True)
    assert locks is not None  # it was named
    with locks:
        return look_at(locks)


def _walk(tree: DecisionTree, given: dict[str, Given], pair_s: float | None, *, ask: bool) -> Walk:
    if ask:
        return interview(tree, given, pair_s, read_line)
    walked = walk(tree, given, pair_s)
    if (question := walked.question) is not None:
        raise Misconfigured(f"{question.name!r} is not answered ({question.text}); allowed: {allowed(question)}")
    return walked


def _print(tree: DecisionTree, advice: Advice, as_json: bool) -> None:
    if as_json:
        print_json(as_data(advice))
    else:
        click.echo("\n".join(advice_lines(tree, advice)).lstrip("\n"))
