"""Several names at once.

1. One deadline for the whole; if one name is refused, all are released.
2. Where the engine can, all lines are entered in one step: two such takers stand in the same order in every line,
   so they cannot cross. Elsewhere names are taken one by one in canonical order (sorted), which cannot cross either.
3. Names are distinct: a name twice would wait for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from .._core.acquire import ExpiredGrants, persist, rollback
from .._core.coordinator_core import CoordinatorCore
from .._core.deadlock import detect_deadlock
from .._core.flow import NOW, Flow, Shield
from .._core.lease import Hold, fresh
from .._core.timing import SHORTEST_REQUEST_S
from ..errors import Misconfigured, NotAcquired
from ..model import Claim, Grant, LockSpec, Queued, check_name
from ..ports import TakesMany


def canonical(names: Iterable[str]) -> list[str]:
    """The specs in canonical order, the same for all callers."""
    if isinstance(names, str):
        raise Misconfigured(f"lock_all takes several names, not the one str {names!r}; use lock() for one")
    try:
        ordered = sorted(check_name(name) for name in names)
    except TypeError:
        raise Misconfigured(f"lock_all takes several names, not {names!r}") from None
    if not ordered:
        raise Misconfigured("lock_all was given no names; give at least one")
    for one, other in pairwise(ordered):
        if one == other:
            raise Misconfigured(f"lock_all was given {one!r} twice; give each name once")
    return ordered


def obtain_all(core: CoordinatorCore, specs: Sequence[LockSpec], timeout: float | None, actor: str) -> Flow[list[Hold]]:
    """Acquire all or none, and let the keeper renew them."""
    if isinstance(core.backend, TakesMany):
        return (yield from _together(core, core.backend, [core.claim(spec, actor) for spec in specs], timeout))
    return (yield from _one_by_one(core, specs, timeout, actor))


def _together(core: CoordinatorCore, many: TakesMany, claims: list[Claim], timeout: float | None) -> Flow[list[Hold]]:
    began: float = yield NOW
    due = None if timeout is None else began + timeout
    spec, admission = claims[0].spec, core.admission
    expired = ExpiredGrants()

    def attempt(limit: float | None) -> Flow[list[Grant | Queued] | None]:
        admission.check()
        return many.take_all(claims, timeout != 0, limit)

    admission.asking.update({claim.owner: claim for claim in claims})
    at_once: bool | None = None
    try:
        while True:
            outcomes = yield from persist(spec, began, timeout, attempt)
            if outcomes is None:
                raise NotAcquired(_names(claims), 0.0)
            if at_once is None:
                at_once = all(isinstance(outcome, Grant) for outcome in outcomes)
            grants = yield from _await_all(core, claims, outcomes, began, timeout)
            if grants is not None:
                break
            granted = [outcome.ttl for outcome in outcomes if isinstance(outcome, Grant)]
            if len(granted) == len(outcomes):  # nobody waits
                yield from expired.pause(core.backend, spec, min(granted), began, timeout)
        now: float = yield NOW
        holds = [
            core.keep(Hold(claim, grant, now), now - began, at_once)
            for claim, grant in zip(claims, grants, strict=True)
        ]
        if admission.closed:
            yield from core.refuse(holds)
        return holds
    except GeneratorExit:
        raise
    except BaseException as error:
        yield from rollback(core.backend, claims, error, due)
        yield from core.miss(claims, error, began, timeout)
        raise
    finally:
        for claim in claims:
            admission.asking.pop(claim.owner, None)


def _await_all(
    core: CoordinatorCore,
    claims: Sequence[Claim],
    outcomes: Sequence[Grant | Queued],
    began: float,
    timeout: float | None,
) -> Flow[list[Grant] | None]:
    """Wait until all are granted by push; None when a poll is due (one poll refreshes all places)."""
    now: float = yield NOW
    look_again = now + min((o.look_again for o in outcomes if isinstance(o, Queued)), default=0.0)
    until = look_again if timeout is None else min(look_again, began + timeout)
    grants: list[Grant] = []
    for claim, outcome in zip(claims, outcomes, strict=True):
        if isinstance(outcome, Grant):
            grants.append(outcome)
            continue
        yield from detect_deadlock(core.backend, claim, None if timeout is None else began + timeout)
        now = yield NOW
        if timeout is not None and now >= began + timeout:
            raise NotAcquired(_names(claims), now - began, ahead=outcome.ahead)
        pushed = yield from core.admission.turn(core.backend, claim, outcome, max(0.0, until - now))
        if pushed is None or not claim.spec.renew:
            return None
        grants.append(pushed)
    now = yield NOW
    return grants if all(fresh(grant, claim.spec, now) for claim, grant in zip(claims, grants, strict=True)) else None


def _one_by_one(
    core: CoordinatorCore, specs: Sequence[LockSpec], timeout: float | None, actor: str
) -> Flow[list[Hold]]:
    began: float = yield NOW
    due = None if timeout is None else began + timeout
    holds: list[Hold] = []
    try:
        for spec in specs:
            left = timeout and max(SHORTEST_REQUEST_S, began + timeout - (yield NOW))
            holds.append((yield from core.obtain(spec, left, actor)))
        for hold in holds:
            hold.check((yield NOW))
    except GeneratorExit:
        raise
    except BaseException as error:
        yield from let_go_all(core, holds, due)
        if isinstance(error, NotAcquired) and timeout:  # the last name knows of its own wait only
            now: float = yield NOW
            raise NotAcquired(error.name, now - began, ahead=error.ahead) from error
        raise
    return holds


def let_go_all(core: CoordinatorCore, holds: Sequence[Hold], due: float | None = None) -> Flow[bool]:
    """Release all, last taken first, whatever happens meanwhile. True if all were held until now."""
    held: bool = yield Shield(core.let_go_each(list(reversed(holds)), due))
    return held


def _names(claims: Sequence[Claim]) -> str:
    return ", ".join(claim.spec.name for claim in claims)
