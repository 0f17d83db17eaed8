"""What a waiter listens for, and what it makes of what it hears: pure, fed by a wire.

1. Every watch begins at the revision after the look that it goes on from: nothing falls between. (From that revision
   itself etcd would serve it by a slow catch-up loop.)
2. In the line of a mutex a waiter listens to the claim before it and to nobody else: one release wakes one waiter.
   Where that claim is known to hold, its end is the grant, without another look: nobody stands before it, and nobody
   comes in before. Where it is not known, or may leave a ghost, its end is a reason to look.
3. In other lines a waiter counts what leaves before it, and looks when enough has left for it to fit.
4. That its own claim lives is not heard here: it follows from its lease, which the flow knows the age of.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from .places import Place
from .rpc import unb64

HANDED = "handed"
"""What was waited for has happened: the claim holds."""
LOOK = "look"
"""Something has happened; a look will tell."""


class Watch:
    """One waiter's watch. `body` is the request; `hear` is told of every message."""

    __slots__ = ("_all", "_before", "_excess", "_holds", "_own", "_sole", "body")

    def __init__(self, ranges: Iterable[tuple[str, str]], revision: int, quiet: bool) -> None:
        """`quiet`: only of what ends."""
        only = ',"filters":[0]' if quiet else ""
        self.body = "".join(
            f'{{"create_request":{{"key":"{key}","range_end":"{end}","start_revision":{revision + 1}{only}}}}}'
            for key, end in ranges
        )
        self._own = ""
        self._sole = ""
        self._holds = False
        self._before: dict[str, int] = {}
        self._excess = 0
        self._all = False

    def hear(self, message: Any) -> str | None:
        """The verdict, or None to go on listening."""
        result = message.get("result", {})
        if "error" in message or result.get("canceled"):
            return LOOK  # compacted away, or this member has lost its leader
        for event in result.get("events", ()):
            verdict = self._hear_of(event["kv"], ended=event.get("type") == "DELETE")
            if verdict is not None:
                return verdict
        return None

    def _hear_of(self, kv: Any, ended: bool) -> str | None:
        key = kv["key"]
        if self._all or (key == self._own and ended):
            return LOOK
        if key == self._sole:
            if ended:
                return HANDED if self._holds else LOOK
            if json.loads(unb64(kv["value"])).get("g"):
                self._holds = True
        elif ended and key in self._before:
            self._excess -= self._before.pop(key)
            if self._excess <= 0:
                return LOOK
        return None


def for_one_before(before: Place, alone: bool, revision: int) -> Watch:
    """In a mutex's line. `alone`: nobody, and no ghost, stands before that one."""
    watch = Watch([(before.key, "")], revision, quiet=False)
    watch._sole = before.key
    watch._holds = (alone or bool(before.granted)) and not before.stays
    if before.stays:
        watch._sole, watch._own = "", before.key  # its end is only ever a reason to look
    return watch


def for_ghosts(ghosts: Iterable[Place], revision: int) -> Watch:
    """Nobody stands before; what keeps the name closed goes by itself."""
    watch = Watch([(ghost.key, "") for ghost in ghosts], revision, quiet=True)
    watch._all = True
    return watch


def for_room(
    own: str, before: Iterable[Place], excess: int, ranges: Iterable[tuple[str, str]], revision: int, eager: bool
) -> Watch:
    """Until `excess` of what stands before has left; `eager`: at whatever ends."""
    watch = Watch(ranges, revision, quiet=True)
    watch._own = own
    watch._before = {place.key: place.weight for place in before}
    watch._excess = excess
    watch._all = eager
    return watch
