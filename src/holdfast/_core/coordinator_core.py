"""What the blocking and the asyncio coordinator share: identities, and the flows from a spec to a hold and back.

An owner id is made before the first request and used once. An actor is a thread or a task, which waits and holds as
one: a deadlock is a cycle of actors, and only an actor that holds something can close one.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from ..errors import BackendUnavailable, HoldfastError, Misconfigured, NotAcquired
from ..model import ATTEMPT_MODE, Claim, Grant, LockSpec, Queued, Sequencer, check_name, check_token
from ..observe.observer import CallBeside, Observer
from ..ports import AnyBackend, Asks, Guards, Recovers, Surveys
from .acquire import Admission, acquire, rollback, within
from .actor_exchange import ActorExchange
from .deadlock import LOOSE
from .flow import NOW, Flow, Shield, Sleep, Spawn
from .lease import Hold
from .renewal import Keeper, renew_now
from .withdraw import Patience, release_all_until_done, release_each, release_until_done, withdraw

if TYPE_CHECKING:
    from ..observe.stats import LockStats

SETTLE_LIMIT_S = 1.0
"""How long a close waits for what others have in flight."""

T = TypeVar("T")


class CoordinatorCore:
    """One coordinator's side of the protocol, for any driver."""

    def __init__(
        self,
        backend: AnyBackend,
        keeper: Keeper,
        prefix: str,
        observer: Observer | None = None,
        beside: CallBeside | None = None,
        pid: int = 0,
    ) -> None:
        self.backend = backend
        self.pid = pid
        """The process that it belongs to. In a forked child its holds belong to the parent."""
        self.keeper = keeper
        self.observer = observer
        """Is told what happens; None where nobody looks."""
        self._beside = beside
        """Calls code of the user's outside the keeper, which must not wait for it."""
        keeper.dropped = self._drop
        keeper.observer = observer
        self._prefix = prefix
        self.partitions: set[str] = set()
        """The partitions that this coordinator is a member of."""
        self.actors = ActorExchange()
        """What those share who tell, ask and handle messages of actors."""
        self._numbers = itertools.count(1)
        self._least_ttl = backend.least_ttl
        self._enter = keeper.enter
        self.holding: dict[str, int] = {}
        """How many names each actor holds."""
        self.holds: set[Hold] = set()
        """Every hold that the keeper renews, or that is lost and not yet released by its holder."""
        self.admission = Admission()
        self.reentered: dict[tuple[str, str, object], Hold] = {}
        """What reentrant locks hold, by name and actor (and task, where tasks share a thread)."""

    def claim(self, spec: LockSpec, actor: str) -> Claim:
        """A new claim for a spec; checks the limits of the engine."""
        return Claim(spec, self.new_owner(spec), actor)

    def new_owner(self, spec: LockSpec) -> str:
        """The owner id of a new claim for a spec; checks the limits of the engine."""
        if spec.ttl < self.backend.least_ttl:
            raise Misconfigured(
                f"ttl of {spec.name!r} is {spec.ttl:g} s; {self.backend.scheme} keeps no less than "
                f"{self.backend.least_ttl:g} s"
            )
        return f"{self._prefix}-{next(self._numbers):x}"

    def actor(self, number: int) -> str:
        """The name of one thread or task, as others see it."""
        return f"{self._prefix}.{number}"

    @property
    def client_id(self) -> str:
        """What the owner ids of all claims of this coordinator begin with, before a dash."""
        return self._prefix

    def entangled(self, claim: Claim) -> bool:
        """Whether the actor holds something: only then can it close a deadlock."""
        return claim.actor.removeprefix(LOOSE) in self.holding

    def obtain(self, spec: LockSpec, timeout: float | None, actor: str) -> Flow[Hold]:
        """Acquire, and let the keeper renew it. The first try is inlined: mostly it is all there is to do."""
        if spec.ttl >= self._least_ttl:
            claim = Claim(spec, f"{self._prefix}-{next(self._numbers):x}", actor)  # `claim`, inlined
        else:
            claim = self.claim(spec, actor)  # raises the reason
        admission = self.admission
        admission.asking[claim.owner] = claim
        try:
            if admission.closed:
                admission.check()
            began = 0.0 if timeout is None else (yield NOW)  # without a timeout the first request reads the clock
            first: Grant | Queued | BaseException | None
            try:
                first = yield from self.backend.take(claim, timeout != 0, within(timeout) if timeout else None)
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001  `acquire` raises it again, after undoing what it may have left
                first = error
            else:
                if first.__class__ is Grant:
                    now: float = yield NOW
                    hold = Hold(claim, first, now)
                    if now < hold.deadline:
                        self.keep(hold, now - (began or first.since))
                        if admission.closed:
                            yield from self.refuse([hold])
                        return hold
            if timeout is None:
                began = first.since if isinstance(first, (Grant, Queued)) else (yield NOW)
            try:
                hold = yield from acquire(self.backend, claim, first, began, timeout, self.entangled(claim), admission)
            except GeneratorExit:
                raise
            except BaseException as failure:
                yield from self.miss([claim], failure, began, timeout)
                raise
            self.keep(hold, hold.since - began, at_once=False)
            if admission.closed:
                yield from self.refuse([hold])
            return hold
        except (GeneratorExit, Exception):
            raise
        except BaseException as error:
            if claim.owner in admission.asking:  # an interruption that struck outside of `acquire`: see there
                yield from rollback(self.backend, [claim], error)
            raise
        finally:
            admission.asking.pop(claim.owner, None)

    def miss(self, claims: Sequence[Claim], error: BaseException, began: float, timeout: float | None) -> Flow[None]:
        """Tell of an acquisition that ended with this error."""
        if self.observer is not None:
            if isinstance(error, NotAcquired):
                waited = error.waited
            else:
                waited = (yield NOW) - began
            for claim in claims:
                self.observer.missed(claim, error, waited, timeout)

    def refuse(self, holds: Sequence[Hold]) -> Flow[None]:
        """Release a grant that came while the coordinator was closing."""
        for hold in holds:
            hold.lose("closed")
        try:
            yield Shield(self.let_go_each(holds))
        except HoldfastError:
            pass  # closed by now, and the grant with it
        self.admission.check()

    def keep(self, hold: Hold, waited: float, at_once: bool = True) -> Hold:
        """Let the keeper renew a hold."""
        self.holds.add(hold)
        actor = hold.claim.actor
        if actor[0] == LOOSE:
            actor = actor[1:]
        self.holding[actor] = self.holding.get(actor, 0) + 1
        if self._enter(hold):  # `Keeper.put`, inlined
            self.keeper.wake()
        if self.observer is not None:
            self.observer.acquired(hold.claim, hold.token, waited, at_once)
        return hold

    def let_go(self, hold: Hold, patience: Patience | None = None) -> Flow[bool]:
        """Release. True if it was held until now. An engine out of reach is told later, in the background.

        What the request does not need is done after it, so that the next holder does not wait for it. With `patience`
        it is one of several releases: those that are left to the background are recorded there.
        """
        spec = hold.claim.spec
        now: float = yield NOW
        mine, last = self._part(hold, now)
        if not last:
            return mine
        until = hold.since + spec.hold_at_least if spec.hold_at_least else 0.0
        answered = True
        try:
            if patience is not None and patience.exhausted:
                raise BackendUnavailable("the engine does not answer in time")
            release = self.backend.release(hold.claim, max(0.0, until - now) if until else 0.0)
            held = yield from (release if patience is None else patience.limit(release, now))
        except BackendUnavailable as error:
            if patience is None:
                yield Spawn(release_until_done(self.backend, hold.claim, until))
            else:
                patience.left.append((hold.claim, until))
                patience.lost += (yield NOW) - now
            held, answered = mine, False
            if self.observer is not None:
                self.observer.unreleased(hold.claim, hold.token, error, (yield NOW) - now)
        except GeneratorExit:
            raise
        except BaseException:  # cancelled before it was sent, perhaps
            yield Shield(withdraw(self.backend, hold.claim, until))
            raise
        finally:
            self.forget(hold)
        if mine and self.observer is not None:
            ended: float = yield NOW
            self.observer.released(hold.claim, hold.token, ended - hold.since, ended - now if answered else None)
        return mine and held

    def end(self, hold: Hold) -> Flow[bool]:
        """End a hold of which the engine was told in another way: an attempt's. True if it was held until now."""
        now: float = yield NOW
        mine = hold.let_go(now)
        self.forget(hold)
        if mine and self.observer is not None:
            self.observer.released(hold.claim, hold.token, now - hold.since)
        return mine

    def _part(self, hold: Hold, now: float) -> tuple[bool, bool]:
        """End the hold locally. Returns whether it was held until now, and whether the engine must be told."""
        if hold.reason == "forked":
            return False, False
        if hold.depth > 1:
            hold.depth -= 1
            return hold.over(now) is None, False
        mine = hold.let_go(now)
        if hold.forgotten:
            return False, False
        hold.forgotten = True
        return mine, True

    def let_go_each(self, holds: Sequence[Hold], due: float | None = None) -> Flow[bool]:
        """Release several, one after the other. True if all were held until now.

        Whatever happens meanwhile, all are released; an engine that does not answer is waited for once. `due`: when the
        timeout is over of the acquisition that gives them back.
        """
        held, patience = True, Patience(due)
        failure: BaseException | None = None
        for hold in holds:
            try:
                held = (yield from self.let_go(hold, patience)) and held
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001  Ctrl-C, mostly: raised below, when all are let go
                failure = failure or error
        if patience.left:
            yield Spawn(release_all_until_done(self.backend, patience.left))
        if failure is not None:
            raise failure
        return held

    def close(self) -> Flow[None]:
        """End all that is held and waited for. An engine that does not answer is waited for once; the rest expires."""
        self.admission.closed = True
        self.keeper.close()
        holds = list(self.holds)
        for hold in holds:
            hold.lose("closed")
            if hold.claim.spec.mode == ATTEMPT_MODE:  # its record stays: others find out that nobody is at it
                self.forget(hold)
        holds = [hold for hold in holds if hold.claim.spec.mode != ATTEMPT_MODE]
        patience = Patience()
        yield from self._settle()
        waiting = list(self.admission.asking.values())
        yield from release_each(self.backend, [(claim, 0.0) for claim in waiting], patience)
        for hold in holds:
            try:
                yield from self.let_go(hold, patience)
            except Misconfigured:
                pass  # the engine refuses it for good

    def release_at_exit(self, holds: Sequence[Hold]) -> Flow[None]:
        """The same at the end of the process, without telling listeners."""
        claims = [
            (hold.claim, hold.since + hold.claim.spec.hold_at_least)
            for hold in holds
            if hold.claim.spec.mode != ATTEMPT_MODE
        ]
        return release_each(self.backend, claims, Patience())

    def _settle(self) -> Flow[None]:
        """Wait for a bounded time until no acquisition or release of others is in flight."""
        admission = self.admission
        now: float = yield NOW
        end = now + SETTLE_LIMIT_S
        while now < end and (
            any(owner not in admission.waiting for owner in list(admission.asking))
            or any(hold.forgotten for hold in list(self.holds))
        ):
            yield Sleep(0.002)
            now = yield NOW

    def forget(self, hold: Hold) -> None:
        """Stop renewing the hold and decrement its actor's count."""
        hold.forgotten = True
        hold.lease = hold.listener = None  # break the reference cycle
        if self.observer is not None and self.observer.spans is not None:
            self.observer.spans.ended(hold.claim.owner, hold.reason or "")
        self.holds.discard(hold)
        self.keeper.discard(hold)
        if hold.key is not None and self.reentered.get(hold.key) is hold:
            del self.reentered[hold.key]
        actor = hold.claim.actor
        if actor[0] == LOOSE:
            actor = actor[1:]
        if (count := self.holding.get(actor, 0)) > 1:
            self.holding[actor] = count - 1
        else:
            self.holding.pop(actor, None)

    def _drop(self, hold: Hold) -> None:
        """Its lease was garbage-collected without a release: it is not renewed any more, and ends with its ttl."""
        if self.observer is not None:
            self.observer.dropped(hold.claim)
        self.forget(hold)
        if self._beside is not None:
            self._beside(_warn_dropped, hold)

    def renew(self, hold: Hold) -> Flow[None]:
        """Renew at the holder's request; raises `LeaseLost` if it has ended."""
        hold.check((yield NOW))
        yield from renew_now(self.backend, hold, self.observer)
        now: float = yield NOW
        hold.check(now)
        self.keeper.put(hold)

    def recovered(self, hold: Hold) -> Flow[None]:
        """Tell the engine that what the predecessor left is put right; raises `LeaseLost` if the hold has ended."""
        backend = self.backend
        assert isinstance(backend, Recovers), "whoever gives recover= has demanded the promise"
        if not (yield from backend.recovered(hold.granted())):
            hold.lose("refused")
        hold.check((yield NOW))

    def count(self, hold: Hold, what: str) -> None:
        """Count a step in the life of a hold that nobody is told of."""
        if self.observer is not None:
            self.observer.meter.count(hold.claim.spec, what)

    def sequencer(self, hold: Hold) -> Sequencer:
        spec = hold.claim.spec
        return Sequencer(self.backend.scheme, self.backend.cluster, spec.name, spec.mode, hold.token)

    def check(self, sequencer: Sequencer) -> Flow[bool]:
        """Whether the grant of a sequencer is held at this moment: one read."""
        if (sequencer.backend, sequencer.cluster) != (self.backend.scheme, self.backend.cluster):
            raise Misconfigured(
                f"the sequencer is from {sequencer.backend} {sequencer.cluster}, this is "
                f"{self.backend.scheme} {self.backend.cluster}; check it where it was made"
            )
        if not isinstance(self.backend, Surveys):
            raise Misconfigured(f"{self.backend.scheme} cannot be surveyed, so a sequencer cannot be checked")
        views = yield from self.backend.survey(sequencer.name, exact=True)
        return any(
            claim.token == sequencer.token and claim.live
            for view in views
            if view.name == sequencer.name
            for claim in view.holders
        )

    def ask(self, name: str, token: int | None) -> Flow[int]:
        """Ask the holders of a name to give way; returns how many were asked."""
        if not isinstance(self.backend, Asks):
            raise Misconfigured(
                f"{self.backend.scheme} cannot ask a holder of {name!r} to give way; `evict` ends a hold by force"
            )
        return self.backend.ask(check_name(name), None if token is None else check_token(token, name))

    def guard(self, hold: Hold) -> object:
        """A condition for the user's own transaction on the same engine: that this very grant stands."""
        if not isinstance(self.backend, Guards):
            raise Misconfigured(
                f"{self.backend.scheme} has no condition to put into a transaction of yours: {hold.claim.spec.name!r} "
                "cannot be guarded so; claim a fence with the lease instead, see holdfast.fenced and holdfast.sql"
            )
        return self.backend.guard(hold.granted())

    def observe(self, hold: Hold, kind: str, held: float) -> None:
        """Tell of a step in the life of a lease that was held for so many seconds."""
        if self.observer is not None:
            reason = hold.failure if kind == "jeopardy" else hold.reason or ""
            self.observer.changed(hold.claim, hold.token, kind, held, reason)

    def stats(self, refusals: Mapping[tuple[str, str], int]) -> LockStats:
        """What was counted, and what is held and waited for now."""
        assert self.observer is not None
        held = [hold.claim.spec for hold in list(self.holds) if hold.alive and not hold.forgotten]
        waiting = [claim.spec for claim in list(self.admission.asking.values())]
        return self.observer.meter.view(held, waiting, refusals)

    def timed(self, verb: str, flow: Flow[T]) -> Flow[T]:
        """Measure how long a request of this verb takes."""
        began: float = yield NOW
        result = yield from flow
        if self.observer is not None:
            self.observer.meter.request(verb, (yield NOW) - began)
        return result


def _warn_dropped(hold: Hold) -> None:
    spec = hold.claim.spec
    warnings.warn(
        f"the lease on {spec.name!r} (token {hold.token}) was dropped without a release: it is renewed no more, and "
        f"ends within its ttl of {spec.ttl:g} s; keep it for as long as you need it, or use `with`",
        ResourceWarning,
        stacklevel=1,
    )


Obtain: TypeAlias = Callable[[CoordinatorCore, LockSpec, float | None, str], Flow[Hold]]
"""A flow from a spec to a hold, within a timeout and for an actor: `CoordinatorCore.obtain` is one."""
