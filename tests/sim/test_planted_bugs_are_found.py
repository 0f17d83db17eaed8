"""Each planted bug is found within 2,000 seeds, searched from seed 0, by the invariant that is there to catch it.

And each invariant has a bug that it catches: one that nothing can break says nothing.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import holdfast_sim
from holdfast._core.line import Line
from holdfast.errors import Misconfigured
from holdfast_sim.bytes.planted import CLIENT_BUGS
from holdfast_sim.planted import BUGS, planted
from holdfast_sim.seed import run
from holdfast_sim.seeds import find, run_one

WITHIN = 2000
ASKED_FOR = {
    "no-drain",
    "release-without-owner-check",
    "token-from-a-deleted-counter",
    "check-on-write-fence",
    "overtaking-in-the-line",
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    world = BUGS[bug].world
    outcome = find(bug, range(WITHIN), jobs=1, engine=world).found(bug)
    assert outcome is not None, f"not found in {WITHIN} seeds"
    assert outcome.story
    without = run_one(world, outcome.seed)
    assert not without.invariant, f"seed {outcome.seed} breaks {without.invariant!r} without the bug, too"


def test_the_bugs_that_were_asked_for_are_there() -> None:
    assert set(BUGS) >= ASKED_FOR
    assert all(bug.about for bug in BUGS.values())


def test_each_invariant_has_a_bug_that_it_catches() -> None:
    of_clients = {invariant for bug in CLIENT_BUGS.values() for invariant in bug.invariants}
    caught = {bug.invariant for bug in BUGS.values()} | (of_clients & {"no flow spins"})
    assert caught == invariants()


def test_a_bug_is_taken_out_again() -> None:
    before = Line.release, Line.promote
    for bug in BUGS:
        with pytest.raises(ZeroDivisionError):
            with planted(bug):
                raise ZeroDivisionError
    assert (Line.release, Line.promote) == before
    assert not run(0).invariant


def test_a_bug_that_nobody_knows_is_named() -> None:
    with pytest.raises(Misconfigured, match="no bug is called 'gremlin'; there are: "):
        with planted("gremlin"):
            pass


def invariants() -> set[str]:
    """All that the simulator's source can complain of, but for the worlds that have bugs and tests of their own."""
    folder = Path(*holdfast_sim.__path__)
    own = ("bytes", "quorum", "partition_groups")
    files = [file for file in folder.rglob("*.py") if not str(file.relative_to(folder)).startswith(own)]
    trees = [ast.parse(file.read_text()) for file in files]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {name for call in calls if _is_violation(call) for name in _names(call.args[0])}


def _is_violation(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "Violation"


def _names(node: ast.expr) -> list[Any]:
    if isinstance(node, ast.IfExp):
        return [*_names(node.body), *_names(node.orelse)]
    assert isinstance(node, ast.Constant), f"an invariant is named in the source, line {node.lineno}"
    return [node.value]
