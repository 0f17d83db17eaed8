"""Updates: what was acknowledged is there in the end.

1. Two acknowledged writes computed from the same version: one of them undid the other, whatever else happened.
2. Acknowledged ⊆ final: each acknowledged write is a member of the set that the resource ends with.
3. An acknowledged version is in the resource's log. The counter is as large as its set.

A write that nobody heard the outcome of may be there or not. The commit that undid a lost write is named: it replaced a
version (`before`) whose set had the write, by one computed from a version (`parent`) whose set had not.
"""

from __future__ import annotations

from ..history import Commit, History, Operation
from .finding import Finding, who


def check(history: History) -> Finding:
    """One violation for each acknowledged write that is lost."""
    acknowledged = [o for o in history.operations if o.verb == "write" and o.outcome == "ok" and o.version is not None]
    finding = Finding("updates", len(acknowledged), why_not="no write was acknowledged")
    log = {commit.number: commit for commit in history.commits if commit.verb == "write"}
    undone_by: dict[int, Commit] | None = None
    twin: dict[tuple[str, int | None], Operation] = {}
    for write in acknowledged:
        assert write.version is not None
        other = twin.setdefault((write.name, write.parent), write)
        final = history.finals.get(write.name)
        if final is None:
            if other is not write:
                _report_same_parent(finding, other, write)
        elif write.version not in log:
            story = f"version {write.version} of {who(write)} is not in the resource's log"
            finding.broken(write.name, story, [write], write.invoked)
        elif write.version not in final.members:
            if undone_by is None:
                undone_by = _culprits(history.commits)
                makers = {(o.client, o.process, o.seq): o for o in history.operations if o.verb == "write"}
            _tell(finding, write, undone_by.get(write.version), makers)
    for final in history.finals.values():
        if final.counter != len(final.members):
            story = f"the counter of {final.name!r} says {final.counter}, and its set has {len(final.members)} members"
            finding.broken(final.name, story, [], commits=[final.version])
    return finding


def _culprits(commits: list[Commit]) -> dict[int, Commit]:
    """For each version that was undone, the commit that undid it last."""
    parents = {commit.number: commit.parent for commit in commits if commit.verb == "write"}
    culprits: dict[int, Commit] = {}
    for commit in commits:
        if commit.verb != "write":
            continue
        undone, kept = commit.before, commit.parent
        while undone != kept:  # back to the version that both come from; numbers grow from parent to child
            if undone > kept:
                culprits[undone] = commit
                undone = parents.get(undone, 0)
            else:
                kept = parents.get(kept, 0)
    return culprits


def _tell(
    finding: Finding, write: Operation, culprit: Commit | None, makers: dict[tuple[str, int, int], Operation]
) -> None:
    story = f"version {write.version} of {write.name!r}, acknowledged to {who(write)}, is not in the end"
    if culprit is None:
        finding.broken(write.name, story, [write], write.invoked)
        return
    maker = makers.get((culprit.client, culprit.process, culprit.seq))
    story += f": {culprit.client} (token {culprit.token}) undid it with version {culprit.number}"
    story += f", computed from version {culprit.parent}"
    shown = [write] if maker is None else [write, maker]
    finding.broken(write.name, story, shown, culprit.time, [write.version or 0, culprit.number])


def _report_same_parent(finding: Finding, first: Operation, second: Operation) -> None:
    story = f"{who(first)} and {who(second)} both wrote from version {first.parent} of {first.name!r}"
    story += ", and both were acknowledged: one undid the other"
    finding.broken(first.name, story, [first, second], second.invoked)
