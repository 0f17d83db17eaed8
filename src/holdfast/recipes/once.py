"""Once: run the work of a key once, remember its result. Flows over records (`holdfast.record`).

1. An attempt begins by writing its record where there is none: that is also the look for a result, in one request. The
   version of that record is the attempt's token.
2. Whoever writes names the version that it has read. So of two that begin only one does, and an attempt that was
   succeeded (a zombie) is refused when it completes: the result of its successor stands.
3. A running attempt is touched by the keeper, as a lease is renewed. If nobody has touched it for its ttl it is dead:
   it may have done its work or not, and `takeover` says what happens. There is no default: nobody can know but the
   user.
4. An attempt that was never begun to its caller's knowledge (cancelled, or the reply was lost) is ended in the
   background, so that it is not taken for a dead one.
5. Whoever finds another one running looks again, with pauses, until there is a result, or `wait` is over.
6. A result that cannot be kept leaves the attempt in doubt, as a crash does: its work is done, so it must not simply be
   repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from .._core import backoff
from .._core.coordinator_core import CoordinatorCore
from .._core.flow import NOW, Flow, Shield, Spawn
from .._core.lease import Hold
from .._core.lease import begin as begin_hold
from ..errors import AttemptInProgress, BackendUnavailable, FenceRejected, HoldfastError, Misconfigured, PayloadMismatch
from ..model import Claim, Grant
from ..ports import Records
from ..record import Record, Swapped, check_record
from .once_options import OncePlan
from .once_record import DONE, ENDED, FAILED, RUNNING, AttemptRecord, AttemptView, Origin, view
from .records import records_of

TRIES_COUNT = 4
"""How often a write is tried whose reply is lost, before its caller is told."""
POLL_S, POLL_CAP_S = 0.01, 0.25
"""The first and the longest pause between two looks at an attempt that another one makes."""


class AttemptSpec(NamedTuple):
    """What is asked for: an attempt at the work of a key."""

    plan: OncePlan
    key: str
    record_key: str
    fingerprint: str
    wait: float | None


@dataclass(slots=True)
class Running:
    """An attempt of our own."""

    key: str
    record_key: str
    hold: Hold
    version: int
    record: AttemptRecord


@dataclass(frozen=True, slots=True)
class Finished:
    """Somebody has done it before, or has failed for good."""

    record: AttemptRecord


@dataclass(frozen=True, slots=True)
class Dead:
    """Nobody stands behind this attempt any more, and nobody knows how far it came."""

    record: AttemptRecord
    version: int
    view: AttemptView


Begun: TypeAlias = Running | Finished | Dead


def begin(
    core: CoordinatorCore,
    spec: AttemptSpec,
    origin: Origin,
    actor: str,
    started: Callable[[Running], None],
    take_over: int = 0,
) -> Flow[Begun]:
    """Begin an attempt, or find out what became of the last one. `take_over`: a dead one that may be succeeded.

    `started` is told of an attempt of our own before it is kept alive: an interruption that strikes from there on finds
    whose it is, and `withdraw` ends it.
    """
    plan, key, full, fingerprint, wait = spec
    records, owner = records_of(core.backend, plan.name), core.new_owner(plan.spec)
    began: float = yield NOW
    expected, mine, looks = 0, AttemptRecord(RUNNING, 1, fingerprint, (), origin), 0
    try:
        sent = began
        while True:
            swapped = yield from _swap(records, full, expected, mine, owner, plan.ttl, plan.keep)
            if swapped.done and swapped.record is not None:
                claim = Claim(plan.spec.named(full), owner, actor)
                return (yield from _start(core, claim, spec, sent, swapped.record, mine, started))
            record = swapped.record
            while True:
                if record is None:
                    expected, mine, sent = 0, AttemptRecord(RUNNING, 1, fingerprint, (), origin), (yield NOW)
                    break
                found = AttemptRecord.decode(record)
                if fingerprint and found.fingerprint and found.fingerprint != fingerprint:
                    raise PayloadMismatch(plan.name, key)
                if found.state in (DONE, FAILED):
                    return Finished(found)
                if found.state == ENDED or record.version == take_over:
                    expected, mine, sent = record.version, found.next(fingerprint, origin), (yield NOW)
                    break
                if record.remaining <= 0:
                    return Dead(found, record.version, view(key, record, found))
                waited = (yield NOW) - began
                if wait is not None and waited >= wait:
                    raise AttemptInProgress(plan.name, key, waited, f"{found.origin.host}, process {found.origin.pid}")
                at_most = record.remaining + POLL_S if wait is None else min(record.remaining + POLL_S, wait - waited)
                yield from backoff.pause(looks, base=POLL_S, cap=POLL_CAP_S, at_most=at_most)
                looks += 1
                record = yield from records.read_record(full)
    except (GeneratorExit, PayloadMismatch, AttemptInProgress, Misconfigured):
        raise
    except HoldfastError:
        yield Spawn(_give_back(records, plan, full, owner))
        raise
    except BaseException:  # cancelled: it may have begun (rule 4)
        yield Shield(_give_back(records, plan, full, owner))
        raise


def _start(
    core: CoordinatorCore,
    claim: Claim,
    spec: AttemptSpec,
    sent: float,
    record: Record,
    mine: AttemptRecord,
    started: Callable[[Running], None],
) -> Flow[Begun]:
    now: float = yield NOW
    plan, key = spec.plan, spec.key
    hold = begin_hold(claim, Grant(record.version, sent, plan.ttl), now)
    if hold is None:
        raise BackendUnavailable(
            f"the engine took longer than the ttl of {plan.ttl:g} s to begin {key!r} of {plan.name!r}; try again, with "
            "a longer ttl"
        )
    running = Running(key, spec.record_key, hold, record.version, mine)
    started(running)
    core.keep(hold, now - sent)
    return running


def withdraw(core: CoordinatorCore, plan: OncePlan, running: Running) -> Flow[None]:
    """End an attempt whose body has not begun (rule 4)."""
    try:
        owner = running.hold.claim.owner
        yield from _give_back(records_of(core.backend, plan.name), plan, running.record_key, owner)
    finally:
        yield from core.end(running.hold)


def advance(core: CoordinatorCore, plan: OncePlan, running: Running, phase: str, value: object) -> Flow[None]:
    """Remember a phase."""
    if any(name == phase for name, _ in running.record.phases):
        raise Misconfigured(
            f"the phase {phase!r} of {running.key!r} ({plan.name!r}) was reached before; ask attempt.phases first"
        )
    yield from _write(core, plan, running, lambda now: now.reached(phase, value), plan.ttl)


def complete(core: CoordinatorCore, plan: OncePlan, running: Running, result: bytes) -> Flow[None]:
    """Remember the result; raises `FenceRejected` if another attempt has taken over (rule 2)."""
    try:
        yield from _write(core, plan, running, lambda now: now.done(result), 0.0)
    except FenceRejected:
        yield from core.end(running.hold)
        raise
    yield from core.end(running.hold)


def end(core: CoordinatorCore, plan: OncePlan, running: Running, state: str, error: str) -> Flow[None]:
    """End an attempt that is not done. One that was taken over is the other one's affair."""
    try:
        yield from _write(core, plan, running, lambda now: now.over(state, error), 0.0)
    except FenceRejected:
        pass
    finally:
        yield from core.end(running.hold)


def settle(core: CoordinatorCore, spec: AttemptSpec, dead: Dead, result: bytes) -> Flow[bool]:
    """Remember a result for a dead attempt, which somebody knows to have done its work. False: look again."""
    plan = spec.plan
    records, owner = records_of(core.backend, plan.name), core.new_owner(plan.spec)
    done = dead.record.done(result)
    swapped = yield from _swap(records, spec.record_key, dead.version, done, owner, 0.0, plan.keep)
    return swapped.done


def _write(
    core: CoordinatorCore,
    plan: OncePlan,
    running: Running,
    change: Callable[[AttemptRecord], AttemptRecord],
    ttl: float,
) -> Flow[None]:
    """Change the record of our own attempt; raises `FenceRejected` if it is another one's by now.

    Several threads or tasks may write at once. The version is read before the record, and set after it: so an old
    record never goes with a new version, which would undo what another thread has written.
    """
    records, owner = records_of(core.backend, plan.name), running.hold.claim.owner
    while True:
        expected = running.version
        new = change(running.record)
        swapped = yield from _swap(records, running.record_key, expected, new, owner, ttl, plan.keep)
        record = swapped.record
        if swapped.done and record is not None:
            running.record, running.version = new, record.version
            return
        if record is None or record.owner != owner or record.version == expected:
            mark = None if record is None else record.version
            if core.observer is not None:
                held = (yield NOW) - running.hold.since
                hold, successor = running.hold, "" if record is None else record.owner
                core.observer.refused(hold.claim, hold.token, held, mark, "once", running.record_key, successor)
            raise FenceRejected(f"{plan.name}/{running.key}", running.hold.token, mark)
        found = AttemptRecord.decode(record)  # a try whose reply was lost, or another thread of this attempt
        if found == new:
            running.record, running.version = new, record.version
            return
        if found.state != RUNNING:
            raise Misconfigured(f"the attempt {running.key!r} of {plan.name!r} is over: it is {found.state} already")
        running.record, running.version = found, record.version


def _swap(
    records: Records, key: str, expected: int, new: AttemptRecord, owner: str, ttl: float, keep: float
) -> Flow[Swapped]:
    """Write, however often it takes. What was written by a try whose reply was lost counts as written."""
    data, failures = new.encode(), 0
    check_record(key, data)
    while True:
        try:
            swapped = yield from records.swap_record(key, expected, data, owner, ttl, keep)
        except BackendUnavailable:
            failures += 1
            if failures == TRIES_COUNT:
                raise
            yield from backoff.pause(failures, base=0.05)
            continue
        found = swapped.record
        if not swapped.done and failures and found is not None and (found.owner, found.data) == (owner, data):
            return Swapped(True, found)
        return swapped


def _give_back(records: Records, plan: OncePlan, key: str, owner: str) -> Flow[None]:
    """End an attempt that nobody has begun to work on, if it is there (rule 4)."""
    failures, now = 0, (yield NOW)
    end_at = now + plan.ttl
    while (yield NOW) < end_at:
        try:
            record = yield from records.read_record(key)
            if record is None or record.owner != owner:
                return
            found = AttemptRecord.decode(record)
            if found.state != RUNNING:
                return
            ended = found.over(ENDED, "it was given up before it began").encode()
            yield from records.swap_record(key, record.version, ended, owner, 0.0, plan.keep)
            return
        except BackendUnavailable:
            failures += 1
            yield from backoff.pause(failures, base=0.05)
