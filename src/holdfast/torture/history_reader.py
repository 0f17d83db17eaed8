"""Reads the lines of a run back and merges them into one history; writes a history out as one file, for others.

1. The lines of a process pair up by number; across processes only the clock orders.
2. A last line that was torn by a kill is dropped; a torn line anywhere else is an error.
3. The resource's log and final state are read from its database, if the folder has one.
4. A process number that the system gave out twice is made unique: two processes are two processes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import Misconfigured
from .garbage_collection import gc_disabled
from .history import Commit, FaultRecord, Final, History, Leftover, Operation, Run
from .resource import FILE, Resource

JSON: TypeAlias = dict[str, Any]
_EVENTS = frozenset({"invoke", "ok", "fail", "info"})
_DEFAULTS = {field.name: field.default for field in fields(Operation) if field.default is not MISSING}
_LAST = ("returned", "outcome", "held", "version", "error")


def load(location: str | os.PathLike[str]) -> History:
    """The history of the run in this folder, or in this exported file."""
    path = Path(location)
    if not path.exists():
        raise Misconfigured(f"{str(path)!r} does not exist; give the folder of a recorded run, or an exported history")
    history = History()
    processes: set[tuple[str, int]] = set()
    with gc_disabled():
        for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
            _read(_lines(file), history, processes)
    history.operations.sort(key=lambda operation: operation.invoked)
    for index, operation in enumerate(history.operations):
        operation.index = index
    if path.is_dir() and (path / FILE).exists():
        with Resource(path / FILE) as resource:
            history.commits = list(resource.commits())
            history.finals = {final.name: final for final in resource.finals()}
    return history


def export(history: History) -> Iterator[JSON]:
    """All of a history as lines, events by time."""
    yield {"kind": "run", **asdict(history.run)}
    yield from sorted(_events(history), key=lambda line: line["time"])
    for fault in history.faults:
        yield {"kind": "fault", **asdict(fault)}
    for commit in history.commits:
        yield {"kind": "commit", **asdict(commit)}
    for final in history.finals.values():
        yield {"kind": "final", **asdict(final), "members": sorted(final.members)}
    for left in history.left:
        yield {"kind": "left", **asdict(left)}
    if history.ended is not None:
        yield {"kind": "end", "time": history.ended}


def _read(lines: list[JSON], history: History, processes: set[tuple[str, int]]) -> None:
    operations: dict[tuple[str, int, int], Operation] = {}
    client, process = "", 0
    for line in lines:
        kind = line.pop("kind")
        if kind in _EVENTS:
            key = (line.pop("client", client), line.pop("process", process), line.pop("seq"))
            _read_event(operations, key, kind, line)
        elif kind == "process":
            client, process = line["client"], line["process"]
            while (client, process) in processes:
                process += 1 << 32
            processes.add((client, process))
        else:
            _read_other(kind, line, history)
    history.operations += operations.values()


def _read_event(
    operations: dict[tuple[str, int, int], Operation], key: tuple[str, int, int], kind: Any, line: JSON
) -> None:
    when = line.pop("time")
    if kind == "invoke":
        operations[key] = Operation(*key, invoked=when, **line)
    elif "verb" in line:  # a point
        operations[key] = Operation(*key, invoked=when, returned=when, outcome=kind, **line)
    else:
        operation = operations[key]
        operation.returned = when
        operation.outcome = kind
        for fact, value in line.items():
            setattr(operation, fact, value)


def _read_other(kind: str, line: JSON, history: History) -> None:
    match kind:
        case "run":
            line["promises"] = tuple(line.get("promises", ()))
            line["notes"] = tuple(line.get("notes", ()))
            history.run = Run(**line)
        case "fault":
            history.faults.append(FaultRecord(**line))
        case "left":
            history.left.append(Leftover(**line))
        case "commit":
            history.commits.append(Commit(**line))
        case "final":
            history.finals[line["name"]] = Final(**line | {"members": frozenset(line["members"])})
        case "end":
            history.ended = line["time"]
        case _:
            raise Misconfigured(f"a line of a history has the unknown kind {kind!r}; read it with its own version")


def _events(history: History) -> Iterator[JSON]:
    for operation in history.operations:
        facts = {
            name: value
            for name in _DEFAULTS
            if name != "index" and (value := getattr(operation, name)) != _DEFAULTS[name]
        }
        last = {name: facts.pop(name) for name in _LAST if name in facts}
        who = {"client": operation.client, "process": operation.process, "seq": operation.seq}
        first = {"verb": operation.verb, **who, "time": operation.invoked, "name": operation.name, **facts}
        if operation.returned is None:
            yield {"kind": "invoke", **first}
            continue
        kind = last.pop("outcome", "info")
        returned = last.pop("returned")
        if operation.verb in ("queued", "lost"):
            yield {"kind": kind, **first, **last}
            continue
        yield {"kind": "invoke", **first}
        yield {"kind": kind, **who, "time": returned, **last}


def _lines(file: Path) -> list[JSON]:
    text = file.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]  # what follows the last end of line was torn by a kill
    try:
        lines: list[JSON] = json.loads(b"[" + b",".join(whole.splitlines()) + b"]")
    except ValueError as error:
        raise Misconfigured(f"{file.name} is not a file of JSON lines: {error}; the run cannot be judged") from error
    return lines
