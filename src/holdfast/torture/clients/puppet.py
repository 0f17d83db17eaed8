"""A puppet: `python -m holdfast.torture.clients.puppet`. Does one thing at a time, as a scenario tells it.

Each line on stdin is a command in JSON, each is answered by one line: `{"error": ""}` if it went well, or the
name of the error. An acquire that has to wait says `{"queued": true}` first. `play` begins anew, with an `Order`.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from ...clock import now
from ...errors import BackendUnavailable, HoldfastError
from .actor import Actor, Held
from .order import Order


class Puppet:
    """What it holds, by name."""

    def __init__(self) -> None:
        self._actor: Actor | None = None
        self._held: dict[str, Held] = {}

    def do(self, command: dict[str, Any]) -> dict[str, Any]:
        verb, name = command["do"], command.get("name", "")
        if verb == "play":
            return self._play(Order.read(command["order"]))
        if verb == "rest":
            return self._rest()
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
                return _told(self._actor.read(self._held[name]))
            case "check":
                return _told(self._actor.check(self._held[name]))
            case "write":
                return self._write(name)
            case "release":
                return self._release(name)
        raise AssertionError(f"a puppet can not {verb}")

    def _play(self, order: Order) -> dict[str, Any]:
        self._rest()
        self._actor = Actor(order, queued=lambda: tell({"queued": True}))
        self._actor.connect()
        return {"error": ""}

    def _rest(self) -> dict[str, Any]:
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
        if not isinstance(held, Held):
            return _told(held)
        self._held[name] = held
        return {"error": "", "token": held.lease.token}

    def _work(self, name: str) -> dict[str, Any]:
        assert self._actor is not None
        answer = _told(self._actor.read(self._held[name]))
        if not answer["error"]:
            answer = self._write(name)
        self._release(name)
        return answer

    def _write(self, name: str) -> dict[str, Any]:
        assert self._actor is not None
        if self._held[name].seen is None:
            return {"error": "has read nothing"}
        return _told(self._actor.write(self._held[name]))

    def _release(self, name: str) -> dict[str, Any]:
        assert self._actor is not None
        outcome = self._actor.release(self._held.pop(name))
        return _told(outcome) if isinstance(outcome, HoldfastError) else {"error": "", "held": outcome}


def _told(error: BaseException | None) -> dict[str, Any]:
    return {"error": "" if error is None else type(error).__name__}


def tell(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    logging.getLogger("holdfast").addHandler(logging.NullHandler())
    puppet = Puppet()
    for line in sys.stdin:
        tell(puppet.do(json.loads(line)))
