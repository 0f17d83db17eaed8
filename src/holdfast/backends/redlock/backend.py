"""The flows of a quorum: ballots, a majority, and turns.

1. A round is (owner, ballot): one ballot for all nodes, above all that this client has seen and not below its calendar.
   Within an acquisition every round goes above the one before.
2. A majority of yes to one ballot is the grant, and the ballot is the token; yeses to different ballots never add up.
   It counts from when the ballot was sent.
3. A round that failed is undone at all nodes before anything else is said, as far as it may have left something.
4. An extension keeps the token. Nodes that missed the take are taken in with it: what a slow or restarted node lacks is
   made good with the next renewal.
5. A node's silence is neither yes nor no. Enough of it, and there is no verdict: `BackendUnavailable`.
6. Whoever waits asks when nodes tell that it is its turn (`scripts/turns.lua`), and now and then without that: the
   sooner, the fewer wait before it. That only decides who asks when; a grant is a grant by rule 2 alone. Where votes
   were split, the next try comes after a random pause that grows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from ..._core import backoff
from ..._core.flow import NOW, RANDOM, Call, Sleep, Spawn, Wait
from ..._core.withdraw import release_until_done
from ...errors import BackendUnavailable, Misconfigured, OutcomeUnknown
from ...model import Claim, Extension, Grant, LockSpec, LockView, Promises, Queued, Refusal
from .ballots import Ballots, Round, is_split, opens_in, place_in, rank_in
from .fanout import DECIDED, EVERYBODY, HEARD, KEPT, SENT, Fanout, FanoutFlow, Parts, Tally, Until
from .keys import Keys
from .programs import parts
from .quorum import Kept, Quorum
from .records import TRACE_KEPT, ballot_text, claim_text, ms, waiter_text
from .recovery import NodeRecovery
from .views import survey

ROUNDS_COUNT = 4
"""Rounds in one take: a name that is free, but marked above our calendar, is asked for again at once."""
SHORTEST_SPLIT_S, FIRST_SPLIT_S, LONGEST_SPLIT_S = 0.0005, 0.004, 0.25
"""Pauses after a round in which votes were split."""
FIRST_LOOK_S, LONGEST_LOOK_S = 0.5, 4.0
"""When the first in line looks again without being told, and when those far behind do."""
STEP_S = 0.005
"""By how much each in line looks later than the one before it, once a hold has expired."""
SHORTEST_TIMEOUT_S = 0.02
KEPT_OPTIONS_COUNT = 1024
MEND_EVERY_S = 1.0
"""How often somebody looks after nodes that are not well, in seconds."""


class RedlockBackend:
    """Exclusive locks on a majority of nodes."""

    scheme = "redlock"
    least_ttl = 0.05

    def __init__(self, quorum: Quorum, promises: Promises, calendar_us: Callable[[], int], listens: str) -> None:
        """`listens`: by which word nodes know where waiters of this client are told."""
        self.cluster = quorum.cluster
        self.promises = promises
        self._quorum = quorum
        self._need = quorum.majority
        self._keys = Keys(quorum.namespace)
        self._calendar_us = calendar_us
        self._listens = listens
        self._ballots = Ballots(calendar_us)
        self._mender = NodeRecovery(len(quorum.nodes), self._keys, quorum.longest_ttl, quorum.found_after)
        self._mend_at = 0.0
        self._kept: dict[tuple[float, float], Kept] = {}
        self._release_parts = parts("release", self._keys.marks)

    # Asking

    def take(self, claim: Claim, queue: bool, within: float | None = None) -> FanoutFlow[Grant | Queued | None]:
        spec, ballots = claim.spec, self._ballots
        sent: float = yield NOW
        kept = self._kept.get((spec.ttl, spec.lock_delay))
        if kept is None or spec.capacity != 1:
            kept = self._describe(spec)
        round_ = ballots.find(claim)
        if round_ is None:
            text = claim_text(claim, kept.delay, self._quorum.host, self._quorum.pid())
            round_ = ballots.begin(claim, Round(text, kept.span), sent)
        timeout = kept.timeout if within is None or within > kept.timeout else within
        keys = (self._keys.hold + spec.name, self._keys.marks)
        for attempt in range(ROUNDS_COUNT):
            ballot = ballots.next(spec.name, round_, sent, spec.ttl)
            args: tuple[str, ...] = (kept.span, self._listens if queue else "", f"{ballot:020d}{round_.claim}")
            written: Parts | None = kept.queue if queue else kept.take
            if round_.since:
                args, written = (*args, f"{round_.since:016d}{round_.place or ''}"), None
            request = Fanout("take", keys, args, HEARD if queue else DECIDED, parts=written)
            tally: Tally = yield Call(request, timeout)
            if tally.yes >= self._need:
                if tally.ailing:
                    yield from self._look_after(sent)
                return Grant(ballot, sent, spec.ttl)
            if queue:
                round_.since, round_.place = round_.since or ballot, round_.place or place_in(tally)
            low, lost = ballots.read(spec.name, tally)
            if lost == len(tally.said):  # never used before, most likely
                yield from self._mender.mend()
                luck: float = yield RANDOM
                yield Sleep(luck * backoff.ceiling(attempt, 0.02, 0.05))
            elif not low or tally.yes + low < self._need:
                break
            sent = yield NOW
        yield from self._undo(claim, round_, tally, queue)
        if tally.ailing:
            yield from self._look_after(sent)
        if tally.voted < self._need:
            raise self._no_majority(spec.name, tally)
        if not queue:
            return None
        chance: float = yield RANDOM
        rank, opens = rank_in(tally), opens_in(tally)
        if is_split(tally):
            pause = max(SHORTEST_SPLIT_S, chance * backoff.ceiling(round_.tries, FIRST_SPLIT_S, LONGEST_SPLIT_S))
            round_.tries += 1
        else:
            pause = min(LONGEST_LOOK_S, FIRST_LOOK_S * (1 + rank)) * (0.75 + chance / 2)
            round_.tries = 0
        if opens:
            pause = min(pause, opens + STEP_S * (rank + chance))
        return Queued(pause, 1 + rank, sent, 0.0)

    def _describe(self, spec: LockSpec) -> Kept:
        """What is the same for every claim with these options; refuses what a quorum cannot keep."""
        quorum = self._quorum
        if spec.capacity != 1:
            why = self.promises.notes.get("counting", "")
            raise Misconfigured(f"{spec.name!r} asks for {spec.weight} of {spec.capacity} on a quorum: {why}")
        if spec.ttl > quorum.longest_ttl:
            raise Misconfigured(
                f"ttl of {spec.name!r} is {spec.ttl:g} s, and this quorum knows of {quorum.longest_ttl:g} s at most: "
                f"a node that lost its memory stays out for that long; set ?longest_ttl={spec.ttl:g} in the URL"
            )
        if len(self._kept) >= KEPT_OPTIONS_COUNT:
            self._kept.clear()
        timeout = self._timeout(spec.ttl, None)
        kept = Kept(spec.ttl, spec.lock_delay, timeout, self._keys.marks, self._listens)
        self._kept[spec.ttl, spec.lock_delay] = kept
        return kept

    def _undo(self, claim: Claim, round_: Round, tally: Tally, queue: bool) -> FanoutFlow[None]:
        """Leave nothing of a failed round at any node; a node that said no has nothing.

        What was only sent may be lost with its connection. Who goes on trying undoes it with its next round, or with
        its release; who does not, or has seen a node go, waits until all that may have something have said that they
        have nothing: else the round is not clean, and is released until it is.
        """
        left = [
            node for node, said in enumerate(tally.said) if said == 1 or (said is None and node not in tally.unsent)
        ]
        if not left:
            round_.clean = True
        elif queue and not tally.trouble:
            yield Call(self._release(claim, round_, 0, SENT), self._quorum.node_timeout)
        else:
            undone: Tally = yield Call(self._release(claim, round_, 0, EVERYBODY), self._quorum.node_timeout)
            round_.clean = all(undone.said[node] is not None for node in left)
            if not round_.clean and not queue and tally.voted >= self._need:  # the caller is told no, and goes
                yield Spawn(
                    cast("FanoutFlow[None]", release_until_done(self, claim))
                )  # it asks this backend, and no other

    def turn(self, claim: Claim, queued: Queued, timeout: float) -> FanoutFlow[Grant | None]:
        yield Wait(claim.owner, timeout)
        return None

    # Keeping

    def renew(
        self, claims: Sequence[Claim], within: float | None = None
    ) -> FanoutFlow[list[Extension | Refusal | None]]:
        sent: float = yield NOW
        keys, args, asked = [self._keys.marks], [TRACE_KEPT], dict[str, int]()
        for claim in claims:
            round_ = self._ballots.find(claim)
            if round_ is None or not self._ballots.extend(round_, claim.token, sent + claim.spec.ttl):
                continue  # it is being released
            asked[claim.owner] = len(asked)
            keys += (self._keys.hold + claim.spec.name, self._keys.trace + claim.spec.name)
            args += (round_.span, f"{round_.ballot:020d}{round_.claim}")
        if not asked:
            return [Refusal("refused")] * len(claims)
        timeout = self._timeout(min(claim.spec.ttl for claim in claims), within)
        tally: Tally = yield Call(Fanout("extend", tuple(keys), tuple(args), KEPT), timeout)
        if tally.ailing:
            yield from self._look_after(sent)
        replies = [
            self._extended(claim, sent, tally, asked[claim.owner]) if claim.owner in asked else Refusal("refused")
            for claim in claims
        ]
        if all(reply is None for reply in replies):
            raise self._no_majority(claims[0].spec.name, tally)
        return replies

    def _extended(self, claim: Claim, sent: float, tally: Tally, place: int) -> Extension | Refusal | None:
        yes = tally.yes
        maybe = evicted = 0
        for said in tally.said:
            if said is None or said == b"A":
                maybe += said is None
            elif isinstance(said, bytes):
                verdict = said[1 + place : 2 + place]
                yes += verdict == b"1"
                evicted += verdict == b"e"
        if yes >= self._need:
            return Extension(sent, claim.spec.ttl)
        if yes + maybe >= self._need:
            return None
        return Refusal("evicted" if evicted else "refused")

    def release(self, claim: Claim, linger: float = 0.0) -> FanoutFlow[bool]:
        round_ = self._ballots.find(claim)
        if round_ is None:
            return False
        round_.ending = True
        if round_.clean:
            if round_.since:
                key, waiter = self._keys.hold + claim.spec.name, self._waiter(claim, round_)
                leave = Fanout("leave", (key, self._keys.marks), (waiter, claim.owner), KEPT, gone=claim.owner)
                yield Call(leave, self._quorum.node_timeout)
            self._ballots.end(claim)
            return False
        request = self._release(claim, round_, linger, DECIDED, self._waiter(claim, round_))
        tally: Tally = yield Call(request, self._timeout(claim.spec.ttl, None))
        if tally.ailing:
            yield from self._look_after((yield NOW))
        if tally.yes < self._need and len(tally.said) - tally.said.count(None) < self._need:
            raise self._no_majority(claim.spec.name, tally)
        self._ballots.end(claim)
        return tally.yes >= self._need or (not tally.left and tally.yes + len(tally.trouble) >= self._need)

    def _waiter(self, claim: Claim, round_: Round) -> str:
        """What nodes may have written down of it while it waited."""
        if not round_.since:
            return ""
        return waiter_text(round_.since, self._listens, self._keys.hold + claim.spec.name, round_.claim)

    def _release(self, claim: Claim, round_: Round, linger: float, until: Until, waiter: str = "") -> Fanout:
        """`waiter`: it leaves the line as well."""
        spec, text = claim.spec, f"{round_.ballot:020d}{round_.claim}"
        keys: tuple[str, ...] = (self._keys.hold + spec.name, self._keys.marks)
        if not (round_.renewed or linger or waiter or spec.lock_delay):
            return Fanout("release", keys, (text,), until, parts=self._release_parts)
        if round_.renewed:
            keys = (*keys, self._keys.trace + spec.name)
        return Fanout("release", keys, (text, str(ms(linger)), waiter), until, gone=claim.owner if waiter else "")

    # Looking after them

    def survey(self, prefix: str, exact: bool = False, contended: bool = False) -> FanoutFlow[list[LockView]]:
        if contended:  # nodes are read one after the other: no picture in which a circle could be seen for sure
            return []
        began: float = yield NOW
        views, left = None, self._quorum.request_timeout
        while views is None and left > 0:
            views = yield from survey(self._quorum, self._keys, prefix, self._calendar_us, exact, left)
            if views is None:  # never used before, or out of reach until now
                yield from self._mender.mend()
                left = began + self._quorum.request_timeout - (yield NOW)
        if views is None:
            raise BackendUnavailable(f"no majority to survey: fewer than {self._need} nodes answered, and remember")
        return views

    def evict(self, name: str, token: int) -> FanoutFlow[bool]:
        keys = (self._keys.hold + name, self._keys.marks, self._keys.trace + name)
        request = Fanout("evict", keys, (ballot_text(token), TRACE_KEPT), EVERYBODY)
        tally: Tally = yield Call(request, self._quorum.request_timeout)
        if tally.voted < self._need:
            raise self._no_majority(name, tally)
        return tally.yes > 0

    def _look_after(self, now: float) -> FanoutFlow[None]:
        """Have somebody see to nodes that are out of reach or without memory, now and then."""
        if now >= self._mend_at:
            self._mend_at = now + MEND_EVERY_S
            yield Spawn(self._mender.mend_quietly())

    def _timeout(self, ttl: float, within: float | None) -> float:
        """How long nodes are waited for: far shorter than the ttl."""
        timeout = min(self._quorum.node_timeout, max(SHORTEST_TIMEOUT_S, ttl / 10))
        return timeout if within is None else min(timeout, within)

    def _no_majority(self, name: str, tally: Tally) -> BackendUnavailable:
        nodes, health = len(tally.said), self._mender.health
        why = "; ".join(f"{each.node}: {each.why}" for each in tally.trouble)
        lost = tally.said.count(b"A")
        if lost:
            why += ("; " if why else "") + f"{lost} of them without memory"
            why += f", to be seeded in {health.wait:.0f} s" if health.wait else ""
            if 0 < health.remember < self._need:
                why += f" while only {health.remember} remember: see docs/adr/0011-redlock.md"
        return OutcomeUnknown(
            f"no majority for {name!r}: {tally.voted} of {nodes} nodes answered, {self._need} are needed ({why}); "
            "see that the nodes run and can be reached from here"
        )
