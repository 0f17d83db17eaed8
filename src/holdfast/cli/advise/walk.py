"""From answers to a leaf: pure functions over the tree.

1. `walk` follows the answers for as far as they go: to a leaf, or to the question that has to be answered next.
2. A leaf is followed by the questions that its settings depend on. An engine that cannot keep what the leaf needs is
   not among the answers.
3. An answer that is not allowed is a `BadAnswer`, which says what is; so is one to a question that does not exist.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from ...errors import Misconfigured
from ...recipes.durations import seconds
from .tree import UNKNOWN, Choice, DecisionTree, Leaf, Question

Given: TypeAlias = str | int | float
"""An answer as it was given: the value of an answer, or a number."""


class BadAnswer(Misconfigured):
    """An answer that the tree does not have."""


ASSUMED_PAIR_S = 0.005
"""How long a read and a write take on an engine that was not measured."""


@dataclass(frozen=True, slots=True)
class Step:
    """A question that was answered: with one of its answers, or with a number, or with both.

    `percent` is how many updates conflict, where a number tells that.
    """

    question: Question
    answer: Choice | None
    number: float | None = None
    percent: float | None = None


@dataclass(frozen=True, slots=True)
class Walk:
    """How far the answers go: the steps, the leaf if it was reached, and the question that comes next, if any."""

    steps: tuple[Step, ...]
    leaf: Leaf | None
    question: Question | None = None

    @property
    def chosen(self) -> dict[str, str]:
        """The answers that were chosen, by question."""
        return {step.question.name: step.answer.value for step in self.steps if step.answer is not None}

    def number(self, name: str) -> float | None:
        """The number that a question was answered with."""
        return next((step.number for step in self.steps if step.question.name == name), None)


def walk(tree: DecisionTree, given: Mapping[str, Given], pair_s: float | None = None) -> Walk:
    """Follow the answers. `pair_s` is how long a read and a write take on an engine that was named and measured: then
    nothing is asked about machines and engines."""
    steps: list[Step] = []
    at = tree.first
    while at not in tree.leaves:
        question = tree.questions[at]
        if at not in given:
            return Walk(tuple(steps), None, question)
        step = understand(question, given[at], pair_s)
        steps.append(step)
        assert step.answer is not None  # a question of the tree has answers, and one of them was found
        at = step.answer.next
    leaf = tree.leaves[at]
    for name in leaf.asks:
        question = tree.questions[name]
        chosen = Walk(tuple(steps), leaf).chosen
        if pair_s is not None and name in ("machines", "engine"):
            continue
        if any(chosen.get(other) != value for other, value in question.when.items()):
            continue
        question = possible(tree, leaf, question)
        if name not in given:
            return Walk(tuple(steps), leaf, question)
        steps.append(understand(question, given[name]))
    return Walk(tuple(steps), leaf)


def possible(tree: DecisionTree, leaf: Leaf, question: Question) -> Question:
    """The question with the answers that are possible for this leaf: without engines that cannot keep what it needs."""
    engines = tree.questions["engine"].answers
    fit = tuple(each for each in engines if not tree.engines[each.value].cannot.keys() & set(leaf.needs))
    if question.name == "engine":
        return replace(question, answers=fit)
    if question.name == "machines" and not fit:
        return replace(question, answers=tuple(each for each in question.answers if each.value != "many"))
    return question


def check(tree: DecisionTree, given: Mapping[str, Given]) -> None:
    """Raise `BadAnswer` if one of the answers could not be given to its question, whether it is asked or not."""
    for name, value in given.items():
        if name not in tree.questions:
            raise BadAnswer(
                f"there is no question {reprlib.repr(name)}; there are: {', '.join(sorted(tree.questions))}"
            )
        understand(tree.questions[name], value)


def understand(question: Question, given: Given, pair_s: float | None = None) -> Step:
    """What an answer means; raises `BadAnswer` if it is none of the question's."""
    if isinstance(given, bool) or not isinstance(given, (str, int, float)):
        raise _refused(question, given)
    for answer in question.answers:
        if given == answer.value:
            return Step(question, answer)
    if question.kind == "seconds":
        return Step(question, None, None if given == UNKNOWN else _duration(question, given))
    if question.kind == "percent":
        number = percent = _percent(question, given)
    elif question.kind == "rate":
        number = _rate(question, given)
        percent = conflicts_at(number, ASSUMED_PAIR_S if pair_s is None else pair_s)
    else:
        raise _refused(question, given)
    fits = (answer for answer in question.answers if answer.below is None or percent < answer.below)
    return Step(question, next(fits), number, percent)


def conflicts_at(rate: float, pair_s: float) -> float:
    """How many percent of the updates meet another one between their read and their write, if they come at random.

    >>> f"{conflicts_at(40, 0.005):.1f} {conflicts_at(0, 1):.1f} {conflicts_at(1e9, 1):.1f}"
    '18.1 0.0 100.0'
    """
    return 100 * (1 - math.exp(-rate * pair_s))


def allowed(question: Question) -> str:
    """What may be answered."""
    words = ", ".join(answer.value for answer in question.answers)
    if question.kind == "seconds":
        return f"a duration above 0 (0.4, 400ms, 90s, 5m), or {UNKNOWN}"
    if question.kind == "percent":
        return f"{words}, or a number of percent (29), or a rate as cas reports it (0.29)"
    if question.kind == "rate":
        return f"{words}, or a number of updates in a second (40)"
    return words


def _duration(question: Question, given: Given) -> float:
    """Seconds, as a number or in a text with or without a unit."""
    number = _number(str(given))
    try:
        return seconds(question.name, number if number == number else str(given), "the work")
    except Misconfigured:
        raise _refused(question, given) from None


def _percent(question: Question, given: Given) -> float:
    """29, "29%" and 0.29 are the same. 1 could be either, so it needs its sign."""
    text = str(given).strip()
    number = _number(text.removesuffix("%"))
    if number == 1 and not text.endswith("%"):
        raise BadAnswer(f"{question.name!r}: {given!r} is 1 percent or all of them? Write '1%' or '100%'")
    if 0 < number < 1 and not text.endswith("%"):
        number *= 100
    if not 0 <= number <= 100:
        raise _refused(question, given)
    return number


def _rate(question: Question, given: Given) -> float:
    number = _number(str(given).strip().removesuffix("/s"))
    if not 0 <= number < float("inf"):
        raise _refused(question, given)
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _refused(question: Question, given: object) -> BadAnswer:
    return BadAnswer(
        f"{reprlib.repr(given)} is no answer to {question.name!r} ({question.text}); allowed: {allowed(question)}"
    )
