"""What a waiter listens for, and what it makes of what it hears: pure, fed by a wire.

1. Every watch begins at the revision after the look that it goes on from: nothing falls between. If anything was
   written meanwhile, wherever, etcd serves such a watch by a loop that comes by ten times a second. So each is
   accompanied by one that begins now, and tells at once of what happens from now on.
2. If the claim before it was known to hold when the watch began, and something was written meanwhile, it may have ended
   in between: one look more, instead of up to a tenth of a second.
3. In the line of a mutex a waiter listens to the claim before it and to nobody else: one release wakes one waiter.
   If that claim held (it was known to, or had written it down by its end), its end is the grant, without another look:
   nobody stands before it, and nobody comes in before. Else, or if it may leave a ghost, its end is a reason to look.
4. In other lines a waiter counts what leaves before it, and looks when enough has left for it to fit.
5. That its own claim lives is not heard here: it follows from its lease, which the flow knows the age of.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from .places import Place
from .rpc import unb64

HANDED = "handed"
"""What was waited for has happened: the claim holds."""
LOOK = "look"
"""Something has happened; a look will tell."""


class Watch:
    """One waiter's watch. `body` is the request; `hear` is told of every message."""

    def __init__(self, ranges: Iterable[tuple[str, str]], revision: int, past: bool = False) -> None:
        """Of what ends in these ranges; with `past`, also what it was at its end."""
        more = '"filters":[0],"prev_kv":true' if past else '"filters":[0]'
        places = [f'"key":"{key}","range_end":"{end}",{more}' for key, end in ranges]
        self.body = "".join(
            f'{{"create_request":{{{place},"start_revision":{revision + 1}}}}}{{"create_request":{{{place}}}}}'
            for place in places
        )
        self.key = ""
        """The claim that it is about, of a mutex."""
        self._revision = revision
        self._hasty = False
        self._holds = False
        self._stays = False
        self._before: dict[str, int] = {}
        self._excess = 0
        self._all = False
        self._own = ""
        self.parked: Callable[[], None] | None = None
        """Ends what a wire keeps open for it, between two waits."""

    def end(self) -> None:
        """Nobody will wait for it any more."""
        parked, self.parked = self.parked, None
        if parked is not None:
            parked()

    def holds(self) -> None:
        """A look has shown that the claim it is about holds."""
        self._holds = not self._stays

    def room(self, before: Iterable[Place], excess: int) -> None:
        """What stands before, as the last look has shown."""
        self._before = {place.key: place.weight for place in before}
        self._excess = excess

    def hear(self, message: Any) -> str | None:
        """The verdict, or None to go on listening."""
        result = message.get("result", {})
        if "error" in message or result.get("canceled"):
            return LOOK  # compacted away, or this member has lost its leader
        if result.get("created") and self._hasty:
            self._hasty = False
            if int(result["header"]["revision"]) > self._revision:
                return LOOK
        for event in result.get("events", ()):
            verdict = self._hear_of(event["kv"]["key"], event.get("prev_kv"))
            if verdict is not None:
                return verdict
        return None

    def _hear_of(self, key: str, past: Any) -> str | None:
        if self._all or key == self._own:
            return LOOK
        if key == self.key:
            if past is not None and json.loads(unb64(past["value"])).get("g"):
                self.holds()
            return HANDED if self._holds else LOOK
        if key in self._before:
            self._excess -= self._before.pop(key)
            if self._excess <= 0:
                return LOOK
        return None


def for_one_before(before: Place, alone: bool, revision: int) -> Watch:
    """In a mutex's line. `alone`: nobody, and no ghost, stands before that one."""
    watch = Watch([(before.key, "")], revision, past=True)
    watch.key = before.key
    watch._stays = before.stays
    watch._hasty = alone or bool(before.granted)
    if watch._hasty:
        watch.holds()
    return watch


def for_ghosts(ghosts: Iterable[Place], revision: int) -> Watch:
    """Nobody stands before; what keeps the name closed goes by itself."""
    watch = Watch([(ghost.key, "") for ghost in ghosts], revision)
    watch._all = watch._hasty = True
    return watch


def for_room(
    own: str, before: Iterable[Place], excess: int, ranges: Iterable[tuple[str, str]], revision: int, eager: bool
) -> Watch:
    """Until `excess` of what stands before has left; `eager`: at whatever ends."""
    watch = Watch(ranges, revision)
    watch._own = own
    watch._all = eager
    watch._hasty = True
    watch.room(before, excess)
    return watch
