"""Taking: into the line, or another look at it, and what that means. The rules are in `backend`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..._core.flow import NOW, Call, Flow
from ...errors import BackendUnavailable, Misconfigured
from ...model import Claim, Grant, Queued
from .entering import Sight, describe, enter, look, sight, stand_in_line, take_free
from .granting import Granting, Here, Moved
from .keys import Keys
from .releasing import forget, release
from .rpc import Answer, Rejected, Replies, revision_of
from .session import Session, Standing, alone, new_session
from .sessions import STALE, Sessions

TRIES = 5
MOST_NAMES = 60
"""etcd takes 128 operations in a transaction, and a name may need two of them."""
MOST_MET = 1000
"""So many names are remembered as contended."""


class Taking:
    """Everything up to the grant."""

    def __init__(self, here: Here, keys: Keys, sessions: Sessions) -> None:
        self._here = here
        self._host = json.dumps(here.host)
        self._timeout = here.request_timeout
        self._keys = keys
        self._sessions = sessions
        self._met: dict[str, None] = {}
        self.granting = Granting(here, keys, sessions)

    def take_all(
        self, claims: Sequence[Claim], queue: bool, within: float | None = None
    ) -> Flow[list[Grant | Queued] | None]:
        timeout = self._timeout if within is None else min(self._timeout, within)
        if len(claims) > MOST_NAMES:
            raise Misconfigured(
                f"{len(claims)} names at once are more than one transaction of etcd holds; take at most {MOST_NAMES}"
            )
        for _ in range(TRIES):
            standings: list[Standing] = []
            for claim in claims:
                standing = self._sessions.standings.get(claim.owner)
                if standing is not None and self._is_over(standing):
                    self._sessions.leave(standing)
                    standing = None
                if standing is None:
                    standing = yield from self._admit(claim)
                standings.append(standing)
            try:
                if all(standing.created for standing in standings):
                    outcomes = yield from self._look(standings, queue, timeout)
                else:
                    outcomes = yield from self._enter(standings, queue, timeout)
            except Moved:
                continue
            if outcomes is not None:
                return outcomes or None
        raise BackendUnavailable(f"the line of {claims[0].spec.name!r} changed {TRIES} times under a take; try again")

    def _is_over(self, standing: Standing) -> bool:
        """Whether a claim that is asked for again is gone, or going: with its session, or because it was swept."""
        standing.held = False  # who asks holds nothing
        if standing.doomed:
            standing.unsure = True
        return standing.session.dead or standing.doomed

    def _admit(self, claim: Claim) -> Flow[Standing]:
        """A claim that nothing is known of yet, with the session that it will live by."""
        spec = claim.spec
        if alone(spec):
            session = yield from new_session(spec.ttl, sole=True)
        else:
            session = yield from self._sessions.shared(spec)
        shade = (yield from new_session(spec.ttl + spec.lock_delay, sole=True)) if spec.lock_delay else None
        words = describe(claim, self._host, self._here.pid())
        seat = self._sessions.seat()
        key = self._keys.claim(spec.name, f"{claim.owner.rpartition('-')[0]}.{seat:x}")
        standing = Standing(claim, key, words, session, shade, seat=seat)
        standing.born = self._here.calendar_us()
        self._sessions.standings[claim.owner] = session.members[standing.key] = standing
        self._sessions.by_name.setdefault(spec.name, {})[claim.owner] = None
        return standing

    def _enter(self, standings: list[Standing], queue: bool, timeout: float) -> Flow[list[Grant | Queued] | None]:
        """Into all lines at once. None: begin again; nothing in the list: it was only a try."""
        sent: float = yield NOW
        free = not any(each.entered or self._contended(each.claim.spec.name) for each in standings)
        sessions = _sessions_of(standings)
        rpcs, about = self._sessions.prepare(sessions, standings[0].claim.spec.ttl, sent)
        before = [each.entered for each in standings]
        lining_up = not free and queue and len(standings) == 1 and not before[0]
        if free:
            rpcs.append(take_free(self._keys, standings))
        elif lining_up:
            rpcs.append(stand_in_line(self._keys, standings[0]))
        else:
            rpcs.append(enter(self._keys, standings, queue))
        for each in standings:
            each.entered = each.unsure = True
        replies: Replies = yield Call(tuple(rpcs), timeout)
        for each, again in zip(standings, before, strict=True):
            each.unsure = again  # one that went before may still be under way
        if about:
            self._sessions.hear(about, replies, sent)
        reply = replies[-1]
        if isinstance(reply, Rejected):
            self._refused(reply, sessions)
            return None
        revision = revision_of(reply)
        if lining_up:
            return (yield from self._stood(standings[0], reply, revision, sent, timeout))
        if reply.get("succeeded"):
            if not free:
                for each in standings:
                    self._met.pop(each.claim.spec.name, None)
            return [self.granting.granted(each, revision, revision) for each in standings]
        if free:
            self._meet(standings)
            for each in standings:
                each.entered = False
            return None
        shown = reply["responses"]
        put_now = queue or standings[0].claim.spec.capacity > 1
        for each, mine in zip(standings, shown[::3], strict=True):
            if put_now and mine["response_txn"].get("succeeded"):
                each.created = revision
        sights = [
            sight(each, listed, haunted, revision, each.claim.spec.capacity > 1)
            for each, listed, haunted in zip(standings, shown[1::3], shown[2::3], strict=True)
        ]
        if not put_now and not any(mine["response_range"].get("kvs") for mine in shown[::3]):
            for each in standings:
                yield from forget(self._sessions, each)
            return []
        return (yield from self._judge(standings, sights, queue, sent, timeout))

    def _stood(
        self, standing: Standing, reply: Answer, revision: int, sent: float, timeout: float
    ) -> Flow[list[Grant | Queued] | None]:
        if not reply.get("succeeded"):  # it is there already
            return None
        standing.created = revision
        standing.waited = standing.claim.spec.capacity == 1  # it does not say that it holds, even if it does
        _, listed, haunted = reply["responses"]
        seen = sight(standing, listed, haunted, revision, standing.claim.spec.capacity > 1)
        if seen.holds:
            self._met.pop(standing.claim.spec.name, None)
        return (yield from self._judge([standing], [seen], True, sent, timeout))

    def _contended(self, name: str) -> bool:
        """Whether somebody was met there lately, or this very coordinator wants it more than once."""
        return name in self._met or len(self._sessions.by_name.get(name, ())) > 1

    def _meet(self, standings: list[Standing]) -> None:
        """Somebody else wants these names too: the next take of theirs may have to wait."""
        if len(self._met) > MOST_MET:
            self._met.clear()
        self._met |= {each.claim.spec.name: None for each in standings}

    def _refused(self, reply: Rejected, sessions: Sequence[Session]) -> None:
        if not reply.lease_is_gone:
            raise BackendUnavailable(f"etcd refused: {reply.message}")
        for session in sessions:  # shared by all claims of a take, or theirs alone
            self._sessions.bury(session)

    def _look(self, standings: list[Standing], queue: bool, timeout: float) -> Flow[list[Grant | Queued] | None]:
        """At all lines, and keep the places in them."""
        sent: float = yield NOW
        ttl = standings[0].claim.spec.ttl
        stale = [each for each in _sessions_of(standings) if each.sole or sent - each.since > ttl / STALE]
        if stale:
            yield from self._sessions.tend(stale, timeout)
            if any(session.dead for session in stale):
                return None
        reply: Answer | Rejected
        [reply] = yield Call((look(self._keys, standings, False),), timeout)
        return (yield from self._judge(standings, self._sights(standings, reply, False), queue, sent, timeout))

    def _sights(self, standings: list[Standing], reply: Answer | Rejected, full: bool) -> list[Sight]:
        if isinstance(reply, Rejected):
            raise BackendUnavailable(f"etcd refused a look: {reply.message}")
        shown = reply["responses"]
        return [
            sight(each, listed, haunted, revision_of(reply), full or each.claim.spec.capacity > 1)
            for each, listed, haunted in zip(standings, shown[::2], shown[1::2], strict=True)
        ]

    def _judge(
        self, standings: list[Standing], sights: list[Sight], queue: bool, sent: float, timeout: float
    ) -> Flow[list[Grant | Queued] | None]:
        """What the sights mean for each claim."""
        if any(
            seen.own is None or seen.capacity != each.claim.spec.capacity
            for each, seen in zip(standings, sights, strict=True)
        ):
            reply: Answer | Rejected
            [reply] = yield Call((look(self._keys, standings, True),), timeout)
            sights = self._sights(standings, reply, True)
        outcomes: list[Grant | Queued] = []
        for each, seen in zip(standings, sights, strict=True):
            if seen.own is None:  # expired, or evicted before it heard of its grant: it stands at the end again
                each.created, each.held = 0, False
                return None
            if seen.capacity != each.claim.spec.capacity:
                for other in standings:
                    yield from release(self._here, self._keys, self._sessions, other.claim, 0.0)
                raise _mismatch(each.claim, seen.capacity)
            each.created, each.changed = seen.own.created, seen.own.changed
            grant = yield from self.granting.grant(each, seen, timeout)
            outcomes.append(grant or self.granting.queued(each, seen, sent))
        if not queue and not all(isinstance(outcome, Grant) for outcome in outcomes):
            for each in standings:
                yield from release(self._here, self._keys, self._sessions, each.claim, 0.0)
            return []
        return outcomes


def _sessions_of(standings: Sequence[Standing]) -> list[Session]:
    """Of these claims, each once."""
    if len(standings) == 1 and standings[0].shade is None:
        return [standings[0].session]
    found: dict[int, Session] = {}
    for each in standings:
        found[id(each.session)] = each.session
        if each.shade is not None:
            found[id(each.shade)] = each.shade
    return list(found.values())


def _mismatch(claim: Claim, capacity: int) -> Misconfigured:
    spec = claim.spec
    return Misconfigured(
        f"{spec.name!r} is in use with capacity {capacity}, and was asked for with {spec.capacity}; "
        "use one kind of lock and one number of permits for a name"
    )
