"""A client that executes one command at a time, for scenarios: `python -m holdfast.torture.clients.scripted_client`.

Each line on stdin is a command in JSON, and is answered by one line: `{"error": ""}` if it succeeded, or the name of
the error. An acquire that has to wait answers `{"queued": true}` first. `begin` starts anew with a `ClientConfig`.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from ...clock import now
from ...errors import BackendUnavailable, HoldfastError
from .actor import HeldLease, LockActor
from .config import ClientConfig


class ScriptedClient:
    """What it holds, by name."""

    def __init__(self) -> None:
        self._actor: LockActor | None = None
        self._held: dict[str, HeldLease] = {}

    def execute(self, command: dict[str, Any]) -> dict[str, Any]:
        verb, name = command["do"], command.get("name", "")
        if verb == "begin":
            return self._begin(ClientConfig.from_json(command["config"]))
        if verb == "close":
            return self._close()
        assert self._actor is not None
        match verb:
            case "acquire":
                return self._acquire(name, command)
            case "again":
                self._actor.reconnect(lambda: True)
                answer = self._acquire(name, command)
                return answer if answer["error"] else self._work(name)
            case "section":
                answer = self._acquire(name, command)
                return answer if answer["error"] else self._work(name)
            case _ if name not in self._held:
                return {"error": "holds nothing"}
            case "read":
                return _as_answer(self._actor.read(self._held[name]))
            case "check":
                return _as_answer(self._actor.check(self._held[name]))
            case "write":
                return self._write(name)
            case "release":
                return self._release(name)
        raise AssertionError(f"a scripted client has no command {verb!r}")

    def _begin(self, config: ClientConfig) -> dict[str, Any]:
        self._close()
        self._actor = LockActor(config, queued=lambda: answer_with({"queued": True}))
        self._actor.connect()
        return {"error": ""}

    def _close(self) -> dict[str, Any]:
        if self._actor is not None:
            self._held.clear()
            self._actor.close()
            self._actor = None
        return {"error": ""}

    def _acquire(self, name: str, command: dict[str, Any]) -> dict[str, Any]:
        assert self._actor is not None
        end = now() + command["timeout"]
        held = self._actor.acquire(name, command["timeout"], scoped=True, **command.get("options", {}))
        while isinstance(held, BackendUnavailable) and now() < end:  # as a program does that wants its lock
            time.sleep(0.05)
            held = self._actor.acquire(name, max(0.1, end - now()), scoped=True, **command.get("options", {}))
        if not isinstance(held, HeldLease):
            return _as_answer(held)
        self._held[name] = held
        return {"error": "", "token": held.lease.token}

    def _work(self, name: str) -> dict[str, Any]:
        assert self._actor is not None
        answer = _as_answer(self._actor.read(self._held[name]))
        if not answer["error"]:
            answer = self._write(name)
        self._release(name)
        return answer

    def _write(self, name: str) -> dict[str, Any]:
        assert self._actor is not None
        if self._held[name].seen is None:
            return {"error": "has read nothing"}
        return _as_answer(self._actor.write(self._held[name]))

    def _release(self, name: str) -> dict[str, Any]:
        assert self._actor is not None
        outcome = self._actor.release(self._held.pop(name))
        return _as_answer(outcome) if isinstance(outcome, HoldfastError) else {"error": "", "held": outcome}


def _as_answer(error: BaseException | None) -> dict[str, Any]:
    return {"error": "" if error is None else type(error).__name__}


def answer_with(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    logging.getLogger("holdfast").addHandler(logging.NullHandler())
    client = ScriptedClient()
    for line in sys.stdin:
        answer_with(client.execute(json.loads(line)))
