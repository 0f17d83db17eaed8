"""What a waiter listens for, and what it makes of what it hears: pure, fed by a stream (`notifications`).

1. Every watch begins at the revision after the look that it goes on from: nothing falls between. If anything was
   written meanwhile, wherever, etcd serves such a watch by a loop that comes by ten times a second. So each is
   accompanied by one that begins now, and tells at once of what happens from now on. Both tell of ends; of what is
   written only the second, for to miss that costs a look and nothing else.
2. If the claim before it was known to hold when the watch began, and something was written meanwhile, it may have ended
   in between: one look more, instead of up to a tenth of a second.
   Of a claim of our own coordinator it is known whether it has begun to leave; only then can anything have been missed.
3. In the line of a mutex a waiter listens to the claim before it and to nobody else: one release wakes one waiter. If
   that claim held, its end is the grant (`ordered_keys.handoff`); but not if it may leave a tombstone. That it held is
   heard when it writes it down; a claim of our own coordinator tells it directly (`holds`).
   One that is evicted is written to first, in a transaction before the one that deletes it: its end is no grant, for
   whoever is next is to be told of it (`ordered_keys.end_notes`).
   What it was at its end could come with the event (`prev_kv`), but etcd would have to read it in the gap.
4. A slot is used again, so a key is not yet a claim: what is written there counts if its create revision is that of the
   claim that was seen. The first end that is heard is the end of that claim, or comes after it.
5. In other lines a waiter counts what leaves before it, and looks when enough has left for it to fit.
6. Its own claim may be taken from it while it waits (its lease revoked, its key deleted by hand), so it listens to its
   own key as well. etcd tells a stream of events in the order of their revisions; only what happened between the look
   and the beginning of the watch may be heard a tenth of a second late.
   Of what ends with one lease all has one revision, and there is no order: so the end of a claim of our own coordinator
   is a grant only if that claim had begun to leave.
   That its lease has not run out is not heard here: the flow knows the age of it.
7. Behind a claim of our own coordinator a waiter needs no stream: it is told (`tell`) by the release of that one, which
   reads whether the waiter's key stands in the transaction that ends the other. Only what is done to the other from
   outside is not told. Behind one that does not take all of the capacity, the waiter looks as soon as that one holds.
   While that one waits, too, the list of the session's keys shows it; once it holds, and goes on
   holding, the waiter listens like everybody else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..ordered_keys.handoff import HANDED, LOOK, Handoff
from .http import MalformedReply
from .queue import KeyEntry
from .rpc import KeyValue, unb64, until

if TYPE_CHECKING:
    from ..._core.flow import WakeEvent

ENDED = "DELETE"
_NO_PUTS = '"filters":[0]'
_KEY_VALUE, _ENDED = b'"kv"', b'"DELETE"'
"""In whatever is said of an event this can be nothing else: it is too short, or too long, to be base64."""


class Watch:
    """One waiter's watch. `body` is the request; `hear` is told of every message, a line of JSON."""

    def __init__(
        self, ranges: Iterable[tuple[str, str]], revision: int, own: str = "", before: str = "", words: bool = False
    ) -> None:
        """Of what ends in these ranges; with `words`, also of what is written there from now on.

        `own` is the key of its own claim, whose end is no grant; `before`, of a mutex, that of the claim before it.
        """
        self._ranges, self._words = list(ranges), words
        self._handoff = Handoff(own, before)
        self._created = 0
        self._leaving: Callable[[], bool] | None = None
        self._revision = revision
        self._hasty = self._behind = False
        self._stays = False
        self._before: dict[str, int] = {}
        self._excess = 0
        self._all = False
        self.is_for_room = False
        self._other, self._mine = f'"{before}"'.encode(), f'"{own}"'.encode()
        """The key of the claim before it, and its own, as they stand in a message."""
        self.on_end: Callable[[], None] | None = None
        """Closes the stream that the client has open for it."""
        self.ended = False
        self.is_local = False
        """No stream: somebody here tells it (rule 7)."""
        self.is_shared = self.is_partial = False
        """The line is no mutex's; and the claim before it does not take all of its capacity."""
        self.told: str | None = None
        self._event: WakeEvent | None = None

    @property
    def body(self) -> str:
        """The request."""
        past = f',"start_revision":{self._revision + 1},{_NO_PUTS}'
        now = "" if self._words else f",{_NO_PUTS}"
        return "".join(
            f'{{"create_request":{{"key":"{key}"{until(end)}{more}}}}}'
            for key, end in self._ranges
            for more in (past, now)
        )

    @property
    def count(self) -> int:
        """How many watches the request asks for."""
        return 2 * len(self._ranges)

    @property
    def own(self) -> str:
        return self._handoff.own

    @property
    def is_next(self) -> bool:
        """The claim before it is known to hold."""
        return self._handoff.holds

    def is_about(self, created: int) -> bool:
        """Of a mutex: whether this is the claim before it, and not another one that has its key."""
        return created == self._created

    def wake_by(self, event: WakeEvent) -> None:
        """Somebody waits to be told."""
        self._event = event
        if self.told is not None or self.ended:
            event.set()

    def tell(self, verdict: str) -> None:
        """What the end of the claim before it means: said by whoever of us knows."""
        self.told = verdict
        self._wake()

    def _wake(self) -> None:
        if (event := self._event) is not None:
            event.set()

    def listen(self) -> None:
        """From now on by a stream. In the line of no mutex it may have a mark, so that what it hears is no grant."""
        self.is_local = False
        if self.is_shared:
            self._stays, self._handoff.holds = True, False

    def move_to(self, key: str, created: int, leaving: Callable[[], bool]) -> None:
        """The claim before it has given up its place, and this one of our own stands before that."""
        self._handoff = Handoff(self.own, key)
        self._ranges = [(key, ""), (self.own, "")]
        self._created, self._leaving, self._other = created, leaving, f'"{key}"'.encode()

    @property
    def key(self) -> str:
        """Of a mutex: the claim that it is about."""
        return self._handoff.before

    def end(self) -> None:
        """Nobody will wait for it any more."""
        self.ended = True
        self._wake()
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end()

    def holds(self, created: int) -> None:
        """A claim is known to hold. Nothing, if it is not the one that this is about."""
        if created == self._created:
            if self.is_partial:
                self.tell(LOOK)
                return
            self._handoff.holds = not self._stays
            if self.is_local:
                self._wake()  # it may have to listen from now on

    def room(self, before: Iterable[KeyEntry], excess: int) -> None:
        """What stands before, as the last look has shown."""
        self._before = {entry.key: entry.weight for entry in before}
        self._excess = excess

    def glimpse(self, data: bytes) -> str | None:
        """The verdict, if what comes in can mean one thing only, before anybody has read it."""
        known = self._handoff.holds and not self._handoff.gone and not self._is_torn_away()
        if not known or _ENDED not in data or self._other not in data or self._mine in data:
            return None
        return HANDED if data.count(_KEY_VALUE) == data.count(_ENDED) else None

    def hear(self, line: bytes) -> str | None:
        """The verdict on a message, or None to go on listening."""
        message = json.loads(line)
        result = message.get("result", {})
        if "compact_revision" in result:
            return LOOK  # it began too long ago; its companion goes on
        if "error" in message or result.get("canceled"):
            raise MalformedReply(line)  # this member has lost its leader, or the token is not good: nothing more comes
        if result.get("created") and self._hasty and self._missed(int(result["header"]["revision"])):
            return LOOK
        for event in result.get("events", ()):
            if event.get("type") != ENDED:
                self._read(event["kv"])
            elif (verdict := self._end_of(event["kv"]["key"])) is not None:
                return verdict
        return None

    def _missed(self, revision: int) -> bool:
        """A watch begins at a revision: whether the end may have come before."""
        if revision == self._revision or self._leaving is None:
            self._hasty = False
            return revision > self._revision
        if self._behind:  # this is its companion, which tells of everything from now on
            self._hasty = False
            return self._leaving()
        self._behind = True
        return False

    def _is_torn_away(self) -> bool:
        """What ends now was our own, and had not begun to leave (rule 6)."""
        return self._leaving is not None and not self._leaving()

    def _read(self, kv: KeyValue) -> None:
        if kv["key"] != self.key:
            return
        value = json.loads(unb64(kv["value"]))
        if (value.get("e") or value.get("l")) and int(kv["create_revision"]) == self._created:
            self._stays, self._handoff.holds = True, False
        elif value.get("g"):
            self.holds(int(kv["create_revision"]))

    def _end_of(self, key: str) -> str | None:
        if (verdict := self._handoff.hear_end(key)) is not None:
            return LOOK if self._is_torn_away() else verdict
        if self._all:
            return LOOK
        if key in self._before:
            self._excess -= self._before.pop(key)
            if self._excess <= 0:
                return LOOK
        return None


def for_one_before(before: KeyEntry, own: str, alone: bool, revision: int, leaving: Callable[[], bool] | None) -> Watch:
    """In a mutex's line. `alone`: nobody, and no tombstone, stands before that one.

    `leaving`: whether it, being our own, has begun to leave.
    """
    watch = Watch([(before.key, ""), (own, "")], revision, own, before.key, words=True)
    watch._created = before.created
    watch._stays, watch._leaving = before.stays, leaving
    holds = alone or bool(before.granted)
    watch._hasty = holds or leaving is not None
    if holds:
        watch.holds(before.created)
    return watch


def for_own_before(key: str, created: int, own: str, revision: int, leaving: Callable[[], bool]) -> Watch:
    """In a mutex's line, behind a claim of our own that tells its end."""
    watch = Watch([(key, ""), (own, "")], revision, own, key, words=True)
    watch._created, watch._leaving = created, leaving
    watch._hasty = watch.is_local = True
    return watch


def for_tombstones(tombstones: Iterable[KeyEntry], revision: int) -> Watch:
    """Nobody stands before; what keeps the name closed goes by itself."""
    watch = Watch([(tombstone.key, "") for tombstone in tombstones], revision)
    watch._all = watch._hasty = True
    return watch


def for_room(
    own: str, before: Iterable[KeyEntry], excess: int, ranges: Iterable[tuple[str, str]], revision: int, eager: bool
) -> Watch:
    """Until `excess` of what stands before has left; `eager`: at whatever ends."""
    watch = Watch(ranges, revision, own)
    watch._all, watch.is_for_room = eager, True
    watch._hasty = True
    watch.room(before, excess)
    return watch
