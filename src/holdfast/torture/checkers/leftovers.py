"""Leftovers: when every client is gone and every ttl is over, a survey finds neither a holder nor a waiter."""

from __future__ import annotations

from ..history import History, Operation
from .finding import Finding


def check(history: History) -> Finding:
    """One violation for each claim that was left behind."""
    finding = Finding("leftovers", why_not="the engine was not surveyed after the end")
    if history.ended is None and not history.left:
        return finding
    takes = [operation for operation in history.operations if operation.verb == "acquire"]
    finding.judged = max(1, len({operation.name for operation in takes}))
    owners: dict[str, Operation] = {operation.owner: operation for operation in takes if operation.owner}
    for left in history.left:
        mine = owners.get(left.owner)
        token = f" with token {left.token}" if left.token else ""
        client = left.client or (mine.client if mine is not None else "")
        whose = f" of {client}" if client else ""
        story = f"after the end {left.owner}{whose} still {left.state}{' for' * (left.state == 'waits')} {left.name!r}"
        finding.broken(left.name, story + token, [] if mine is None else [mine])
    return finding
