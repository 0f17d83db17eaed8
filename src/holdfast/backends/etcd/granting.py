"""Granting: who holds is told that it does, who waits is told what to listen for. The rules are in `backend`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ..._core.flow import NOW, Call, Flow
from ...model import Grant, Queued
from . import overtaking
from .background import post
from .entering import Sight, shade_value, value
from .keys import Keys
from .places import CONFIRMED, MARKED
from .rpc import Rejected, Replies, Rpc, changed_at, put, revision_of, txn
from .session import Standing
from .sessions import Sessions
from .watch import Watch, for_ghosts, for_one_before, for_room

PATIENCE = 10.0
"""A waiter looks at least three times in so many seconds, or in a ttl, whichever is shorter."""
SHORTEST_LOOK = 0.1


@dataclass(frozen=True, slots=True)
class Here:
    """Where and who we are: what the world tells the flows."""

    namespace: str
    host: str
    pid: Callable[[], int]
    calendar_us: Callable[[], int]
    request_timeout: float


class Moved(Exception):
    """The line is not as it was seen any more: look again."""


class Granting:
    """From what was seen of a line to a grant, or a place in it."""

    def __init__(self, here: Here, keys: Keys, sessions: Sessions) -> None:
        self._here = here
        self._keys = keys
        self._sessions = sessions

    def grant(self, standing: Standing, seen: Sight, timeout: float) -> Flow[Grant | None]:
        own = seen.own
        assert own is not None
        if own.granted == CONFIRMED:
            standing.confirmed = True
            return self.granted(standing, own.created, own.changed)
        if not seen.holds:
            if seen.line is None or standing.claim.spec.fair:
                return None
            revision = yield from overtaking.overtake(self._keys, standing, seen, timeout)
            if revision is None:
                return None
            standing.confirmed = True
            return self.granted(standing, own.created, revision)
        if own.granted:
            return self.granted(standing, own.created, own.created)
        if own.marked or standing.shade is not None:
            revision = yield from self._confirm(standing, seen, timeout)
            standing.confirmed = own.marked
            return self.granted(standing, own.created, revision if own.marked else own.created)
        if standing.waited:
            yield from self.mark(standing)
        return self.granted(standing, own.created, own.created)

    def _confirm(self, standing: Standing, seen: Sight, timeout: float) -> Flow[int]:
        """Write down a grant that must not go unwritten: that gives it its token, or something that outlives it."""
        now = self._here.calendar_us()
        compare, puts, granted = [changed_at(standing.key, standing.changed)], list[str](), MARKED
        assert seen.own is not None
        if seen.own.marked:
            none_new, puts = overtaking.mark_all(self._keys, seen)
            compare, granted = compare + none_new, CONFIRMED
            if len(puts) == overtaking.MOST_MARKS:
                yield Call((txn(compare, puts),), timeout)
                raise Moved
        puts.append(put(standing.key, value(standing, now, granted), standing.session.lease))
        if standing.shade is not None:
            rpcs, about = self._sessions.prepare([standing.shade], standing.claim.spec.ttl, (yield NOW))
            shade = self._keys.ghost(standing.claim.spec.name, standing.claim.owner)
            puts.append(put(shade, shade_value(standing, now, 0), standing.shade.lease))
        else:
            rpcs, about = [], []
        sent: float = yield NOW
        rpcs.append(txn(compare, puts))
        replies: Replies = yield Call(tuple(rpcs), timeout)
        self._sessions.hear(about, replies, sent)
        reply = replies[-1]
        if isinstance(reply, Rejected) or not reply.get("succeeded"):
            raise Moved
        return revision_of(reply)

    def mark(self, standing: Standing) -> Flow[None]:
        """Say that it holds: in the background, once its holder has been let in, and not if that has left by then."""
        return post(partial(self._mark_of, standing, self._here.calendar_us()))

    def _mark_of(self, standing: Standing, since: int) -> Rpc | None:
        if standing.leaving:
            return None
        held = put(standing.key, value(standing, since, MARKED), standing.session.lease)
        return txn([changed_at(standing.key, standing.changed or standing.created)], [held])

    def granted(self, standing: Standing, created: int, token: int) -> Grant:
        standing.created, standing.token, standing.held = created, token, True
        if standing.watch is not None:
            self._sessions.hush(standing)
        if (behind := self._sessions.behind.get(standing.key)) is not None:
            behind.holds(token)  # who waits there, being our own, need not be told by etcd
        since = standing.given = standing.session.since
        return Grant(token, since, standing.claim.spec.ttl)

    def queued(self, standing: Standing, seen: Sight, sent: float) -> Queued:
        spec = standing.claim.spec
        standing.waited = True
        standing.watch = self._watch(standing, seen)
        if seen.line is not None:
            standing.ahead = len(seen.line.before(standing.claim.owner)) + len(seen.line.ghosts)
        elif seen.before is None or seen.before.granted:
            standing.ahead = 1
        elif not standing.ahead:
            standing.ahead = seen.count - 1
        pause = max(SHORTEST_LOOK, min(PATIENCE, spec.ttl) / 3)
        return Queued(pause, standing.ahead, sent, spec.ttl, standing.created)

    def _watch(self, standing: Standing, seen: Sight) -> Watch:
        """What to listen for. One that is about the same goes on: it has missed nothing."""
        name, old = standing.claim.spec.name, standing.watch
        if seen.line is not None and seen.line.capacity > 1:
            own = seen.own
            assert own is not None
            others = [*seen.line.before(own.owner), *seen.line.ghosts]
            excess = sum(place.weight for place in others) + own.weight - seen.line.capacity
            if old is not None:
                old.room(others, excess)
                return old
            eager = not standing.claim.spec.fair
            return for_room(own.key, others, excess, [self._keys.line(name)], seen.revision, eager)
        before = seen.before
        if before is not None and old is not None and old.key == before.key:
            if before.granted:
                old.holds(before.created)
            return old
        self._sessions.hush(standing)
        if before is None:
            return for_ghosts(seen.ghosts, seen.revision)
        first = seen.line is None and seen.count == 2 and not seen.ghosts
        ours = self._sessions.standings.get(before.owner)
        leaving = None if ours is None else partial(_is_leaving, ours)
        watch = for_one_before(before, standing.key, first, seen.revision, leaving)
        self._sessions.behind[before.key] = watch
        if ours is not None:  # after the line above: whichever of the two comes later sees the other
            watch.holds(ours.token)
        return watch


def _is_leaving(standing: Standing) -> bool:
    return standing.leaving
