"""Whatever the order of claims, writes, commits and roll-backs, a fence does what these few lines do."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import FenceRejected
from holdfast.fenced import FencedFile, FileClaim, SQLiteFence

tokens = st.integers(1, 6)
resources = st.sampled_from(["a", "b"])


@dataclass
class Reference:
    """The fence, in ten lines."""

    marks: dict[str, int] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)

    def claim(self, resource: str, token: int) -> bool:
        accepted = token >= self.marks.get(resource, 0)
        if accepted:
            self.marks[resource] = token
        return accepted

    def write(self, resource: str, token: int, value: int) -> bool:
        accepted = token == self.marks.get(resource)
        if accepted:
            self.values[resource] = value
        return accepted


def accepts(action: Callable[..., object], *values: object) -> bool:
    try:
        action(*values)
    except FenceRejected:
        return False
    return True


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["claim", "write"]), resources, tokens), max_size=40))
def test_a_file_does_what_the_reference_does(steps: list[tuple[str, str, int]]) -> None:
    reference = Reference()
    with tempfile.TemporaryDirectory() as folder:
        fences = {name: FencedFile(f"{folder}/{name}", durable=False) for name in "ab"}
        for value, (verb, name, token) in enumerate(steps):
            if verb == "claim":
                expected = reference.claim(name, token)
                assert accepts(fences[name].claim, token) == expected
            else:  # by a holder that claimed at some time, perhaps long ago
                expected = reference.write(name, token, value)
                assert accepts(FileClaim(fences[name], token).write_text, str(value)) == expected
            for other, fence in fences.items():
                assert fence.mark() == reference.marks.get(other)
                text = FileClaim(fence, 1).read_text()
                assert (None if text is None else int(text)) == reference.values.get(other)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["commit", "rollback"]), st.lists(st.tuples(resources, tokens), max_size=4)),
        max_size=12,
    ),
    st.sampled_from([None, "DEFERRED", "IMMEDIATE"]),
)
def test_rows_do_what_the_reference_does(
    transactions: list[tuple[str, list[tuple[str, int]]]], isolation: str | None
) -> None:
    reference = Reference()
    with closing(sqlite3.connect(":memory:", isolation_level=isolation)) as db:  # type: ignore[arg-type]
        db.execute("CREATE TABLE data (name TEXT PRIMARY KEY, value INTEGER)")
        fence = SQLiteFence(db)
        for value, (end, steps) in enumerate(transactions):
            trial = deepcopy(reference)
            for name, token in steps:
                assert accepts(fence.claim, name, token) == trial.claim(name, token)
                if trial.write(name, token, value):
                    db.execute("INSERT OR REPLACE INTO data VALUES (?, ?)", (name, value))
            getattr(db, end)()
            reference = trial if end == "commit" else reference
            assert {name: fence.mark(name) for name in "ab"} == {name: reference.marks.get(name) for name in "ab"}
            assert dict(db.execute("SELECT name, value FROM data")) == reference.values
