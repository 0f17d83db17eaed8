"""A judged history in the form that the page wants: columns of small numbers, packed.

Times are microseconds from the start of the run. Words that repeat (clients, names, errors) are numbered. `-1` is none.
Violations beyond `SHOWN_COUNT` of one checker are counted, not carried: the JSON beside the page has them all.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from ..checkers import Judgement
from ..history import FaultRecord, History, Operation

SHOWN_COUNT = 2000
VERBS = ("acquire", "queued", "release", "lost", "read", "claim", "write")
OUTCOMES = ("ok", "fail", "info")
MAX_SAFE_INTEGER = 2**53 - 1
"""Beyond this, JavaScript rounds a number; a token is then carried as text."""


class Words:
    """Numbers for words, in the order of their first use."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._numbers = {word: number for number, word in enumerate(known)}

    def __call__(self, word: str) -> int:
        return self._numbers.setdefault(word, len(self._numbers))

    def all(self) -> list[str]:
        return list(self._numbers)


def pack(data: object) -> str:
    """JSON, compressed, as text that can stand in a page."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()
    return base64.b64encode(gzip.compress(text, 6, mtime=0)).decode()


def run_data(history: History, judgement: Judgement) -> dict[str, Any]:
    """One run, with its verdicts."""
    origin = _origin(history)

    def since(time: int | None) -> int:
        return -1 if time is None else (time - origin) // 1000

    clients = Words(sorted({operation.client for operation in history.operations}, key=_by_number))
    names = Words(sorted({operation.name for operation in history.operations}, key=_by_number))
    errors = Words([""])
    made = {(o.client, o.process, o.seq): o.index for o in history.operations}
    lost = {violation.commits[0] for violation in judgement.findings["updates"].violations if violation.commits}
    shown = [violation for finding in judgement.findings.values() for violation in finding.violations[:SHOWN_COUNT]]
    return {
        **{key: value for key, value in judgement.as_data().items() if key != "violations"},
        "discipline": history.run.discipline,
        "seconds": _seconds(history, origin),
        "operations": _columns(
            history.operations,
            {
                "t0": lambda o: since(o.invoked),
                "t1": lambda o: since(o.returned),
                "verb": lambda o: VERBS.index(o.verb),
                "outcome": lambda o: OUTCOMES.index(o.outcome),
                "client": lambda o: clients(o.client),
                "name": lambda o: names(o.name),
                "of": lambda o: made.get((o.client, o.process, o.of), -1) if o.of else -1,
                "token": lambda o: o.token if o.token <= MAX_SAFE_INTEGER else str(o.token),
                "weight": lambda o: o.weight,
                "capacity": lambda o: o.capacity,
                "parent": lambda o: -1 if o.parent is None else o.parent,
                "version": lambda o: -1 if o.version is None else o.version,
                "held": lambda o: -1 if o.held is None else int(o.held),
                "error": lambda o: errors(o.error),
            },
        ),
        "commits": [
            [
                since(commit.time),
                *(commit.number, int(commit.verb == "write"), names(commit.name), commit.token),
                made.get((commit.client, commit.process, commit.seq), -1),
                *(commit.before, commit.parent, int(commit.number in lost)),
            ]
            for commit in history.commits
        ],
        "faults": [_fault(fault, since) for fault in history.faults],
        "violations": [
            [v.checker, v.name, v.story, list(v.operations), list(v.commits), since(v.at) if v.at else -1]
            for v in shown
        ],
        "moments": [
            [since(violation.at), int(checker == "overlap")]
            for checker, finding in judgement.findings.items()
            for violation in finding.violations
            if violation.at
        ],
        "found": {checker: len(finding.violations) for checker, finding in judgement.findings.items()},
        "clients": clients.all(),
        "names": names.all(),
        "errors": errors.all(),
        "verbs": VERBS,
        "outcomes": OUTCOMES,
        "left": [asdict(left) for left in history.left],
    }


def _columns(
    operations: list[Operation], columns: dict[str, Callable[[Operation], int | str]]
) -> dict[str, list[int | str]]:
    return {name: [value(operation) for operation in operations] for name, value in columns.items()}


def _fault(fault: FaultRecord, since: Callable[[int | None], int]) -> list[Any]:
    times = [since(fault.begin), since(fault.end)] if fault.was_run else [-1, -1]
    return [fault.fault, fault.target, *times, fault.note]


def _origin(history: History) -> int:
    begun = [operation.invoked for operation in history.operations[:1]]
    begun += [fault.begin for fault in history.faults if fault.was_run]
    return min(begun, default=0)


def _seconds(history: History, origin: int) -> float:
    times = [operation.returned or operation.invoked for operation in history.operations]
    times += [fault.end for fault in history.faults if fault.was_run]
    return (max(times, default=origin) - origin) / 1e9


def _by_number(word: str) -> tuple[str, int, str]:
    """c2 before c10."""
    head = word.rstrip("0123456789")
    tail = word[len(head) :]
    return head, int(tail) if tail else -1, word
