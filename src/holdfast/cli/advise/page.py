"""The tree as a page, with a drawing: `holdfast advise --markdown`, which is docs/advise.md."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent, wrap

from .advice import code_of
from .settings import settings_of
from .tree import DecisionTree, Leaf, Question


def page(tree: DecisionTree) -> str:
    """The whole page."""
    return (
        "\n".join([tree.page, "## The tree\n", *_drawing(tree), "", *_questions(tree), *_leaves(tree)]).rstrip("\n")
        + "\n"
    )


def _drawing(tree: DecisionTree) -> Iterator[str]:
    yield "```mermaid"
    yield "flowchart LR"
    reached = [tree.first]
    for name in reached:  # grows while it is walked
        if name in tree.leaves:
            yield f'    {_node(name)}["{_label(tree.leaves[name].title)}"]:::leaf'
            continue
        yield f'    {_node(name)}{{"{_label(tree.questions[name].text)}"}}'
        for answer in tree.questions[name].answers:
            yield f'    {_node(name)} -- "{_label(answer.text)}" --> {_node(answer.next)}'
            if answer.next not in reached:
                reached.append(answer.next)
    yield "    classDef leaf fill:#e8f5e9,stroke:#2e7d32,color:#1b1b1b"
    yield "```"


def _node(name: str) -> str:
    return name.replace("-", "_") + "_"  # some words, such as `end`, are Mermaid's own


def _label(text: str) -> str:
    return "<br/>".join(wrap(text.replace('"', "#quot;").replace("`", ""), 34, break_long_words=False))


def _questions(tree: DecisionTree) -> Iterator[str]:
    settings = {name for leaf in tree.leaves.values() for name in leaf.asks}
    yield "## The questions\n"
    for name, question in tree.questions.items():
        if name not in settings:
            yield from _question(tree, question)
    yield "## What the settings depend on\n"
    for name, question in tree.questions.items():
        if name in settings:
            yield from _question(tree, question)


def _question(tree: DecisionTree, question: Question) -> Iterator[str]:
    yield f"**`{question.name}`: {question.text}** {question.why}\n"
    if question.answers:
        yield "| answer | | |"
        yield "|---|---|---|"
        for answer in question.answers:
            to = f"→ {_target(tree, answer.next)}" if answer.next else _engine(tree, question, answer.value)
            yield f"| `{answer.value}` | {answer.text} | {to} |"
        yield ""


def _target(tree: DecisionTree, name: str) -> str:
    if name in tree.questions:
        return f"`{name}`"
    return f"[{tree.leaves[name].title}](#{_anchor(tree.leaves[name].title)})"


def _engine(tree: DecisionTree, question: Question, value: str) -> str:
    if question.name != "engine":
        return ""
    facts = tree.engines[value]
    lacks = [f"cannot: {name} ({why})" for name, why in facts.cannot.items()]
    lacks += [f"weak: {name} ({why})" for name, why in facts.weak.items()]
    return "; ".join([f"`{facts.url}`" if value != "none" else facts.title, *lacks])


def _anchor(title: str) -> str:
    kept = "".join(each for each in title.lower() if each.isalnum() or each in " -_")
    return kept.replace(" ", "-")


def _leaves(tree: DecisionTree) -> Iterator[str]:
    for leaf in tree.leaves.values():
        yield from _leaf(leaf)


def _leaf(leaf: Leaf) -> Iterator[str]:
    settings = settings_of(leaf, None)
    yield f"## {leaf.title}\n"
    yield f"{leaf.use} {leaf.why}\n"
    if leaf.needs or leaf.wants:
        parts = [f"needs *{promise}*" for promise in leaf.needs] + [f"wants *{promise}*" for promise in leaf.wants]
        yield f"Of the engine it {', '.join(parts)}.\n"
    yield "It does not protect from:\n"
    for line in leaf.not_protected:
        yield f"- {line}"
    yield ""
    code = code_of(leaf, settings)
    if leaf.server:
        yield indent(code, "    ")
    else:
        yield f"```{leaf.language}\n{code}```\n"
    if settings:
        yield "| setting | unless measured | |"
        yield "|---|---|---|"
        for each in settings:
            yield f"| `{each.name}` | {each.text} | {each.why} |"
        yield ""
