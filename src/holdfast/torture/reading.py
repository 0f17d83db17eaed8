"""Reads the lines of a run's folder back, and merges them into one history.

1. The lines of a process pair up within its own file; across files only the clock orders.
2. A last line that was torn by a kill is dropped; a torn line anywhere else is an error.
3. The resource's log and final state are read from its database, if the folder has one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..errors import Misconfigured
from .history import Fault, History, Left, Operation, Run
from .resource import FILE, Resource


def load(folder: str | os.PathLike[str]) -> History:
    """The history of the run in this folder."""
    place = Path(folder)
    if not place.is_dir():
        raise Misconfigured(f"{str(place)!r} is not a folder; give the folder of a recorded run")
    history = History()
    for file in sorted(place.glob("*.jsonl")):
        if file.name.startswith("client-"):
            history.operations += read_process(_lines(file))
        else:
            _read_director(_lines(file), history)
    history.operations.sort(key=lambda operation: operation.invoked)
    for index, operation in enumerate(history.operations):
        operation.index = index
    if (place / FILE).exists():
        with Resource(place / FILE) as resource:
            history.commits = list(resource.commits())
            history.finals = {final.name: final for final in resource.finals()}
    return history


def read_process(lines: list[dict[str, Any]]) -> list[Operation]:
    """The operations of one process, in the order of their first lines."""
    operations: dict[int, Operation] = {}
    client, process = "", 0
    for line in lines:
        kind = line.pop("kind")
        if kind == "process":
            client, process = line["client"], line["process"]
            continue
        when = line.pop("time")
        if kind == "invoke":
            operations[line["seq"]] = Operation(client, process, invoked=when, **line)
        elif "verb" in line:  # a point
            operations[line["seq"]] = Operation(client, process, invoked=when, returned=when, outcome=kind, **line)
        else:
            operation = operations[line.pop("seq")]
            operation.returned = when
            operation.outcome = kind
            for fact, value in line.items():
                setattr(operation, fact, value)
    return list(operations.values())


def _read_director(lines: list[dict[str, Any]], history: History) -> None:
    for line in lines:
        match line.pop("kind"):
            case "run":
                line["promises"] = tuple(line.get("promises", ()))
                line["notes"] = tuple(line.get("notes", ()))
                history.run = Run(**line)
            case "fault":
                history.faults.append(Fault(**line))
            case "left":
                history.left.append(Left(**line))
            case "end":
                history.ended = line["time"]
            case unknown:
                raise Misconfigured(
                    f"a line of the director has the unknown kind {unknown!r}; read it with its own version"
                )


def _lines(file: Path) -> list[dict[str, Any]]:
    text = file.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]  # what follows the last end of line was torn by a kill
    try:
        lines: list[dict[str, Any]] = json.loads(b"[" + b",".join(whole.splitlines()) + b"]")
    except ValueError as error:
        raise Misconfigured(f"{file.name} is not a file of JSON lines: {error}; the run can not be judged") from error
    return lines
