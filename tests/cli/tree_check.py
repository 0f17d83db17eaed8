"""What can be wrong with the tree of `holdfast advise`, found without walking it.

1. Every name in it is there: of questions, leaves, engines, promises and settings.
2. Everything is reached, and nothing leads back: every path has an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from string import Template

from holdfast.cli.advise.tree import DecisionTree, Leaf
from holdfast.model import Promises

SETTINGS = frozenset({"ttl", "timeout", "lock_delay", "max_hold"})
"""Those that `settings` computes."""
ALWAYS = SETTINGS - {"max_hold"}
"""Those that there are for work that was not measured, too: only they may be filled in."""


def complaints(tree: DecisionTree) -> Iterator[str]:
    """All that is wrong with a tree."""
    settings = {name for leaf in tree.leaves.values() for name in leaf.asks}
    reached: set[str] = set()
    yield from _follow(tree, tree.first, (), reached)
    for name in sorted((tree.questions.keys() | tree.leaves.keys()) - reached - settings):
        yield f"nothing leads to {name!r}"
    for name in sorted(tree.questions.keys() & tree.leaves.keys()):
        if name in reached:
            yield f"{name!r} is a question and a leaf"
    for leaf in tree.leaves.values():
        yield from _leaf(tree, leaf)
    yield from _settings(tree, settings & tree.questions.keys())
    for engine in tree.engines.values():
        for promise in (engine.cannot.keys() | engine.weak.keys()) - Promises.KNOWN:
            yield f"engine {engine.name!r} lacks {promise!r}, which is no promise"


def _follow(tree: DecisionTree, name: str, path: tuple[str, ...], reached: set[str]) -> Iterator[str]:
    if name in path:
        yield f"{path[-1]!r} leads back to {name!r}"
        return
    if name not in tree.questions and name not in tree.leaves:
        yield f"{path[-1:]} leads to {name!r}, which is neither a question nor a leaf"
    if name in reached or name not in tree.questions:
        reached.add(name)
        return
    reached.add(name)
    question = tree.questions[name]
    if not question.answers:
        yield f"{name!r} has no answers"
    if question.kind in ("percent", "rate") and question.answers[-1].below is not None:
        yield f"the last answer to {name!r} has a bound"
    for answer in question.answers:
        yield from _follow(tree, answer.next, (*path, name), reached)


def _leaf(tree: DecisionTree, leaf: Leaf) -> Iterator[str]:
    for name in leaf.asks:
        if name not in tree.questions:
            yield f"leaf {leaf.name!r} asks {name!r}, which is no question"
    for promise in (*leaf.needs, *leaf.wants):
        if promise not in Promises.KNOWN:
            yield f"leaf {leaf.name!r} asks an engine for {promise!r}, which is no promise"
    for name in leaf.settings:
        if name not in SETTINGS:
            yield f"leaf {leaf.name!r} has the setting {name!r}, which nobody computes"
    filled = (ALWAYS & set(leaf.settings)) | {extra.name for extra in leaf.more}
    for name in set(Template(leaf.code).get_identifiers()) - filled:
        yield f"the code of leaf {leaf.name!r} fills in '${name}', which is none of its settings"


def _settings(tree: DecisionTree, names: set[str]) -> Iterator[str]:
    for question in (tree.questions[name] for name in sorted(names)):
        for other, value in question.when.items():
            if value not in {answer.value for answer in tree.questions[other].answers}:
                yield f"{question.name!r} is asked when {other!r} is {value!r}, which it never is"
    for answer in tree.questions["engine"].answers:
        if answer.value not in tree.engines:
            yield f"{answer.value!r} is no engine"
