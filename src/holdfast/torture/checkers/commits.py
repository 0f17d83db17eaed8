"""Commits: in the resource's own log, no write comes behind a newer token.

1. Under claim-before-read: claims never go back, and a write carries the token of the last claim of its name.
2. Under check-on-write: writes never go back. (That holds, and updates are lost all the same.)
3. Unfenced: nothing is promised; writes that went back are counted by `stale_writes`, for contrast.

The log is in the order of the resource itself, so no clock is involved.
"""

from __future__ import annotations

from ..history import Commit, Discipline, Operation
from .finding import Finding


def check(commits: list[Commit], discipline: Discipline, operations: list[Operation]) -> Finding:
    """One violation for each commit that the fence should have refused."""
    finding = Finding("commits", why_not="the resource was not fenced" if commits else "the resource has no log")
    if discipline == "unfenced":
        return finding
    finding.judged = len(commits)
    marks: dict[str, Commit] = {}
    broken: list[tuple[Commit, Commit | None]] = []
    for commit in commits:
        mark = marks.get(commit.name)
        claims = commit.verb == "claim" or discipline == "check-on-write"
        if mark is not None and commit.token < mark.token:
            broken.append((commit, mark))
        elif not claims and (mark is None or commit.token > mark.token):
            broken.append((commit, None))
        if mark is None or commit.token > mark.token:
            marks[commit.name] = commit
    if broken:
        _tell(finding, broken, operations)
    return finding


def stale_writes(commits: list[Commit]) -> int:
    """How many writes came behind one with a newer token."""
    highest: dict[str, int] = {}
    stale = 0
    for commit in commits:
        if commit.verb == "write":
            stale += commit.token < highest.get(commit.name, 0)
            highest[commit.name] = max(commit.token, highest.get(commit.name, 0))
    return stale


def _tell(finding: Finding, broken: list[tuple[Commit, Commit | None]], operations: list[Operation]) -> None:
    made = {(operation.client, operation.process, operation.seq): operation for operation in operations}
    for commit, mark in broken:
        around = [commit] if mark is None else [mark, commit]
        shown = [made[key] for c in around if (key := (c.client, c.process, c.seq)) in made]
        late = f"a {commit.verb} of {commit.name!r} by {commit.client} (token {commit.token}) was accepted"
        if mark is None:
            story = f"{late} though it had not claimed"
        else:
            story = f"{late} behind the {mark.verb} of {mark.client} (token {mark.token})"
        finding.broken(commit.name, story, shown, commit.time, [c.number for c in around])
