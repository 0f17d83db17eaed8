"""A person is asked: on a terminal, or by lines on stdin.

1. A number or a word answers; `?` says why it is asked; `b` goes back to the question before; `q` ends it.
2. What is not understood is asked again, with what is allowed.
3. Ctrl-C and the end of the input end it, without advice.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import click

from ...errors import Misconfigured
from .text import question_lines, why_lines
from .tree import DecisionTree, Question
from .walk import BadAnswer, Given, Walk, allowed, understand, walk

LINE_BYTES = 1000


class Quit(Exception):
    """The person has had enough."""


def interview(tree: DecisionTree, given: Mapping[str, Given], pair_s: float | None, read: Callable[[], str]) -> Walk:
    """Ask for what is not given; answers with a walk that came to its end."""
    known = dict(given)
    asked: list[str] = []
    while True:
        walked = walk(tree, known, pair_s)
        if (question := walked.question) is None:
            return walked
        for line in question_lines(question, len(asked) + 1):
            click.echo(line, err=True)
        answer = _ask(question, read, can_go_back=bool(asked))
        if answer is None:
            del known[asked.pop()]
        else:
            known[question.name] = answer
            asked.append(question.name)


def _ask(question: Question, read: Callable[[], str], can_go_back: bool) -> Given | None:
    """An answer that is allowed; None to go back."""
    while True:
        words = "?: why, b: back, q: quit" if can_go_back else "?: why, q: quit"
        click.echo(f"  answer ({words}): ", nl=False, err=True)
        line = read()
        if not line:
            click.echo("", err=True)
            raise Misconfigured(f"the input ended before {question.name!r} was answered; allowed: {allowed(question)}")
        text = line.strip()
        if text == "?":
            for explanation in why_lines(question):
                click.echo(explanation, err=True)
        elif text == "q":
            raise Quit
        elif text == "b" and can_go_back:
            return None
        elif text:
            try:
                return _given(question, text)
            except BadAnswer as error:
                click.echo(f"  {error}", err=True)


def _given(question: Question, text: str) -> Given:
    if question.kind == "choice" and text.isdecimal() and 1 <= int(text) <= len(question.answers):
        return question.answers[int(text) - 1].value
    understand(question, text)
    return text


def read_line() -> str:
    """A line of stdin; "" at its end."""
    return sys.stdin.buffer.readline(LINE_BYTES).decode("utf-8", "replace")
