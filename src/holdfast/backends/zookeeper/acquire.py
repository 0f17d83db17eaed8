"""Into the line, and what a look at it says.

1. The node is created (ephemeral, sequential) and the line is listed, both in one write to the socket; a name that is
   only ever used by us needs no listing (see `tree.Ground`). Whoever is not granted watches (see `line`), and lists
   again when it is woken without being an heir (see `handoff`), after a re-connection, and now and then.
2. A hold is good for a ttl from when the request was sent that found it granted, if the leader had answered this
   session shortly before; else the leader is asked first. After a silence (a process that was stopped) the session may
   still end by what the leader knew before: a hold, and the promise to keep a place in the line, are shorter by it.
3. Several names are entered in one step: two such takers stand in the same order in every line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ..._core.flow import NOW, Call, Flow, Spawn
from ...errors import BackendUnavailable, Misconfigured, OutcomeUnknown
from ...model import Claim, Grant, Queued
from ..queue_backend import patience
from .error_mapping import refused
from .handoff import DOUBT_RATIO, Handoff
from .line import Heir, Verdict, judge, picture_of
from .ops import NO_NODE, CreateContainer, Failure, Op, Sync
from .places import Place
from .release import ReleaseFlows
from .requests import Batch, Enter, EnterAll, check_size
from .tombstones import Tombstones
from .tree import KNOWN_FOR, Tree
from .unfair import Turns

TRIES_COUNT = 8
"""How often a take starts over because the ground moved: a parent that was removed, a node that was deleted."""
A_MOMENT_S = 1.0
AGAIN: Final[Any] = object()
"""The line has to be listed anew."""
ALONE: Final[Any] = object()
"""In place of a listing: nobody else stands there (see `tree.Ground`)."""


class AcquireFlows:
    def __init__(
        self,
        tree: Tree,
        places: dict[str, Place],
        leaving: ReleaseFlows,
        traces: Tombstones,
        describe: Callable[[Claim], bytes],
        timeout: float,
    ) -> None:
        self._tree, self._places, self._leaving, self._traces = tree, places, leaving, traces
        self._turns = Turns(tree)
        self._inheriting = Handoff(places)
        self.inherit = self._inheriting.inherit
        self._describe = describe
        self._timeout = timeout

    def take(self, claim: Claim, queue: bool, within: float | None = None) -> Flow[Grant | Queued | None]:
        timeout = self._timeout if within is None else min(self._timeout, within)
        for _ in range(TRIES_COUNT):
            sent: float = yield NOW
            place = self._place(claim, sent)
            if place.tried:
                listed = yield from self._look(place, sent, timeout)
            else:
                listed = yield from self._enter(place, sent, timeout)
            if listed is not None:
                outcome: Any = yield from self._decide(place, listed, sent, timeout, queue)
                if outcome is not AGAIN:
                    return outcome  # type: ignore[no-any-return]
        raise BackendUnavailable(f"the nodes of {claim.spec.name!r} keep changing under our hands; try again")

    def take_all(
        self, claims: Sequence[Claim], queue: bool, within: float | None = None
    ) -> Flow[list[Grant | Queued] | None]:
        timeout = self._timeout if within is None else min(self._timeout, within)
        sent: float = yield NOW
        places = [self._place(claim, sent) for claim in claims]
        entered = [claim for claim, place in zip(claims, places, strict=True) if not place.tried]
        listings: Sequence[Any] = [None] * len(places)
        if len(entered) == len(claims) > 1:
            listings = yield from self._enter_all(places, sent, timeout)
        outcomes: list[Grant | Queued] = []
        for claim, place, listed in zip(claims, places, listings, strict=True):
            outcome: Any = AGAIN
            if listed is not None and not place.gone:
                outcome = yield from self._decide(place, listed, sent, timeout, queue)
            if outcome is AGAIN:
                outcome = yield from self.take(claim, queue, within)
            if outcome is None:  # all or none
                for each in entered:
                    yield from self._leaving.release(each)
                return None
            outcomes.append(outcome)
        return outcomes

    def _place(self, claim: Claim, now: float) -> Place:
        old = place = self._places.get(claim.owner)
        if place is None or place.gone:
            place = Place(claim, self._tree.ground(claim.spec.name).parent, now + patience(claim.spec))
            place.about = self._describe(claim)
            if old is not None:
                place.former = old.former | {old.node}
            self._places[claim.owner] = place
        return place

    def _enter(self, place: Place, sent: float, timeout: float) -> Flow[Any]:
        """Create the node and list the line, in one trip; None if it has to be done again."""
        ground = self._tree.ground(place.claim.spec.name)
        ops: tuple[Op, ...] = (Enter(place, self._tree.acl), ground.listing)
        bold = ground.steady and sent <= ground.known_until and not place.claim.spec.lock_delay
        if bold:
            ops = ops[:1]
        elif sent > ground.known_until:
            ground.known_until = sent + A_MOMENT_S  # one is enough, of all that come at the same time
            ops = (CreateContainer(place.parent, self._tree.acl), *ops)
        answers = yield from self._send((place,), ops, sent, timeout)
        if answers is None:
            return None
        entered, listed = answers[-2:] if not bold else (answers[0], None)
        if isinstance(entered, Failure):
            ground.steady = False
            return (yield from self._prepare([place], entered, timeout))
        place.seen = yield NOW
        ground.known_until = sent + KNOWN_FOR
        if self._traces.due(place.claim.spec):
            yield Spawn(self._traces.sweep(place.server_time(place.seen)))
        if bold:
            if ground.follows(place):
                return ALONE
            ground.steady = False
        return listed or None

    def _enter_all(self, places: Sequence[Place], sent: float, timeout: float) -> Flow[Sequence[Any]]:
        """The same for several, in one step; then their tokens are read."""
        check_size(places)
        for _ in range(TRIES_COUNT):
            grounds = [self._tree.ground(place.claim.spec.name) for place in places]
            missing = [
                CreateContainer(ground.parent, self._tree.acl) for ground in grounds if sent > ground.known_until
            ]
            ops: tuple[Op, ...] = (EnterAll(places, self._tree.acl), *(ground.listing for ground in grounds))
            answers = yield from self._send(places, (*missing, *ops), sent, timeout)
            if answers is None:
                break
            entered, *listings = answers[-1 - len(places) :]
            if not isinstance(entered, Failure):
                for ground in grounds:
                    ground.known_until = sent + KNOWN_FOR
                yield from self._leaving.read(places, timeout)
                return [listed or None for listed in listings]
            yield from self._prepare(places, entered, timeout)
        return [None] * len(places)

    def _send(self, places: Sequence[Place], ops: Sequence[Op], sent: float, timeout: float) -> Flow[Any]:
        for place in places:
            place.tried, place.seen, place.entered = True, sent, sent
        try:
            answers = yield Call(Batch(ops, places[0], places[1:]), timeout)
        except OutcomeUnknown:
            raise
        except BackendUnavailable:
            for place in places:
                place.tried = False
            raise
        if answers is None:
            for place in places:
                place.gone = "session"
        return answers

    def _prepare(self, places: Sequence[Place], failure: Failure, timeout: float) -> Flow[None]:
        """Nothing was created, for want of a parent."""
        for place in places:
            place.tried = False
        if failure.code != NO_NODE:
            raise refused(failure, f"taking {places[0].claim.spec.name!r}")
        for place in places:
            yield from self._tree.plant(place.parent, timeout)

    def _look(self, place: Place, sent: float, timeout: float) -> Flow[Any]:
        """List the line again; None if our node is not in it."""
        link, spec = place.link, place.claim.spec
        if link is None:  # it never got as far as a connection
            place.tried = False
            return None
        ops: tuple[Op, ...] = (self._tree.ground(spec.name).listing,)
        if sent - link.proved > DOUBT_RATIO * spec.ttl:
            ops = (Sync(self._tree.root), *ops)
        answers = yield Call(Batch(ops, place), timeout)
        if answers is None:
            place.gone = "session"
            return None
        listed = answers[-1]
        if isinstance(listed, Failure):
            if listed.code != NO_NODE:
                raise refused(listed, f"taking {spec.name!r}")
            listed = [], None
        if not place.node:
            yield from self._leaving.find(place, listed[0], timeout)
        if place.node in listed[0]:
            if not place.token:
                yield from self._leaving.read([place], timeout)
            return None if place.gone else listed
        if place.node:
            place.gone = place.gone or "evicted"
        place.tried = False
        return None

    def _decide(self, place: Place, listed: Any, sent: float, timeout: float, queue: bool) -> Flow[Any]:
        """Granted, or waiting, or out again (None)."""
        spec, owner = place.claim.spec, place.claim.owner
        if listed is ALONE:
            self._tree.ground(spec.name).alone(place)
            return self._grant(place, sent)
        children, parent = listed
        if len(children) == 1 and children[0] == place.node and parent.mzxid <= place.token and not spec.lock_delay:
            self._tree.ground(spec.name).alone(place)
            return self._grant(place, sent)
        if place.granted:  # said before; the reply was lost
            return self._grant(place, sent)
        picture = picture_of(children)
        mine = picture.find(place.node)
        if mine is None:
            return AGAIN
        opens = 0.0
        if picture.ghosts or picture.wills:
            opens = yield from self._traces.clear(picture, place, timeout)
            if opens < 0:
                return AGAIN
        settled = () if mine.fair else (yield from self._turns.settled(place, picture, timeout))
        verdict = judge(picture, mine, settled)
        if verdict.capacity:
            yield from self._leaving.release(place.claim)
            raise _mismatch(place.claim, verdict.capacity)
        if owner in picture.seats or (verdict.fits and not verdict.granted):
            if (yield from self._turns.claim_slot(place, picture, mine, timeout)):
                return (yield from self._grant_with_care(place, sent, timeout))
            verdict.fits = False
        elif verdict.granted:
            if parent.mzxid > place.token:
                yield from self._turns.mint(place, timeout)
            return (yield from self._grant_with_care(place, sent, timeout))
        if not queue:
            yield from self._leaving.release(place.claim)
            return None
        if verdict.heir is not None and parent.version:  # somebody was granted out of turn: see `handoff`, rule 4
            verdict.heir = None if parent.mzxid > place.token else Heir(verdict.heir.of, False)
        return (yield from self._queue(place, verdict, opens, sent, timeout))

    def _queue(self, place: Place, verdict: Verdict, opens: float, sent: float, timeout: float) -> Flow[Any]:
        if ops := self._inheriting.watching(place, verdict.watch, verdict.heir):
            try:
                answers = yield Call(Batch(ops, place), timeout)
            except BackendUnavailable:
                place.watching = frozenset()
                raise
            if answers is None:
                return AGAIN
        spec = place.claim.spec
        place.until = sent + patience(spec)
        if place.gone:
            return AGAIN
        look_again = patience(spec) / 3
        kept = max(0.0, min(patience(spec), self._covered(place, sent)))
        return Queued(min(look_again, opens) if opens else look_again, verdict.ahead, sent, kept)

    def _covered(self, place: Place, sent: float) -> float:
        """For how long the session lasts for certain."""
        assert place.link is not None
        return place.link.lasts - place.link.unheard(sent)

    def _grant(self, place: Place, sent: float) -> Any:
        spec = place.claim.spec
        place.until = max(sent, place.seen) + spec.ttl  # its node stands for a ttl, by the server's clock too
        if place.gone:  # it had lapsed, and is being deleted: see `places`, rule 3
            return AGAIN
        place.granted = place.granted or sent
        return Grant(place.token, sent, min(spec.ttl, self._covered(place, sent)))

    def _grant_with_care(self, place: Place, sent: float, timeout: float) -> Flow[Any]:
        """After a wait, or with a will, which must be written before anybody holds."""
        if place.claim.spec.lock_delay and not (yield from self._traces.write_will(place, timeout)):
            return AGAIN
        place.granted = yield NOW
        place.heirs, place.ahead = True, None
        assert place.link is not None
        place.link.keep(place)
        return self._grant(place, sent)


def _mismatch(claim: Claim, capacity: int) -> Misconfigured:
    spec = claim.spec
    return Misconfigured(
        f"{spec.name!r} is in use with capacity {capacity}, and was asked for with {spec.capacity}; "
        "use one kind of lock and one number of permits for a name"
    )
