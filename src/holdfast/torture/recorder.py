"""Writes the lines of a history (see `history`): each process its own file, each line one write.

1. A line is written to the kernel before the call that it announces begins, and before its outcome is acted on: a
   kill -9 loses no line. (A power cut would; that is not tested.)
2. Threads may share a recorder: numbers come from one counter, lines are single writes to a file opened for appending.
3. Keep the folder off the disk that a fault fills.
"""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .history import FaultRecord, Leftover, Run, Verb, now

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class LineWriter:
    """A file of lines, opened for appending."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def put(self, line: dict[str, Any]) -> None:
        os.write(self._file, (_encode(line) + "\n").encode())

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()


class PendingOperation:
    """An operation that was announced. End it with exactly one of ok, fail, info; facts are fields of `Operation`."""

    __slots__ = ("_lines", "seq", "verb")

    def __init__(self, lines: LineWriter, verb: Verb, seq: int) -> None:
        self._lines = lines
        self.verb = verb
        self.seq = seq

    def ok(self, **facts: Any) -> None:
        self._end("ok", facts)

    def fail(self, error: BaseException | str = "", **facts: Any) -> None:
        """It certainly did nothing: NotAcquired, FenceRejected."""
        self._end("fail", facts | {"error": _words(error)})

    def info(self, error: BaseException | str = "", **facts: Any) -> None:
        """Nobody can tell whether it was done: OutcomeUnknown, BackendUnavailable, anything unexpected."""
        self._end("info", facts | {"error": _words(error)})

    def _end(self, kind: str, facts: dict[str, Any]) -> None:
        self._lines.put({"kind": kind, "seq": self.seq, "time": now(), **facts})


class Recorder(LineWriter):
    """A client process's own file. Make it in the process that writes it."""

    def __init__(self, folder: str | os.PathLike[str], client: str) -> None:
        process = os.getpid()
        super().__init__(Path(folder) / f"client-{client}-{process}-{now()}.jsonl")
        self._numbers = itertools.count(1)
        self.client = client
        self.put({"kind": "process", "client": client, "process": process, "time": now()})

    def invoke(self, verb: Verb, name: str, **facts: Any) -> PendingOperation:
        """Announce a call, immediately before it is made."""
        seq = next(self._numbers)
        self.put({"kind": "invoke", "verb": verb, "seq": seq, "time": now(), "name": name, **facts})
        return PendingOperation(self, verb, seq)

    def point(self, verb: Verb, name: str, *, of: int, **facts: Any) -> None:
        """What has no duration: `queued` (with until=), `lost` (with token=, error=)."""
        seq = next(self._numbers)
        self.put({"kind": "ok", "verb": verb, "seq": seq, "time": now(), "name": name, "of": of, **facts})


class Log(LineWriter):
    """The controller's file."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__(Path(folder) / "controller.jsonl")

    def run(self, run: Run) -> None:
        self.put({"kind": "run", **_facts(run)})

    def fault(self, fault: FaultRecord) -> None:
        """A fault, when it is over; or one that is not run, with the reason in its note."""
        self.put({"kind": "fault", **_facts(fault)})

    def left(self, left: Leftover) -> None:
        self.put({"kind": "left", **_facts(left)})

    def end(self) -> None:
        """The survey after the end is complete: all leftovers are recorded."""
        self.put({"kind": "end", "time": now()})


def _facts(data: Run | FaultRecord | Leftover) -> dict[str, Any]:
    return {field.name: getattr(data, field.name) for field in fields(data)}


def _words(error: BaseException | str) -> str:
    return error if isinstance(error, str) else f"{type(error).__name__}: {error}"
