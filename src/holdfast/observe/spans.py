"""Spans for OpenTelemetry, made of what coordinators and fences tell. Switched on by `opentelemetry.trace()`.

1. `acquire`, `hold` and `release` of a lock, named by family, which is bounded; the name itself is an attribute. All of
   a caller's are children of the span that is current where it asks; a release is a child of its hold.
2. No span is ever made the current one, so none leaks into other tasks or threads. `acquire` and `release` are made
   when they are over, with the times of their beginning; a hold is open from the grant to its end, and has renewals,
   jeopardy, recovered, asked and lost as events. One that is lost is an error, with its reason.
3. A refusal is a span of its own, linked to the holds of both tokens where this process knows them: the last
   `KNOWN_COUNT` grants are remembered by name and token.
4. Nothing disturbs the locks: what raises is logged. What the keeper tells is added in memory; the end of a span, which
   an exporter may wait for, goes on beside it.
5. Events are added, and spans taken out of `_open`, under one mutex: none is added to a span that has ended.
6. A forked child has no open spans: those that it inherits belong to its parent.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec

from ..model import Claim
from .lock_log import without_passwords
from .log_exception import log_exception
from .observer import CallBeside, Observer

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

KNOWN_COUNT = 10_000
MAX_INTEGER_COUNT = 2**63 - 1
"""The largest that an attribute of OpenTelemetry can have."""

P = ParamSpec("P")
Facts = dict[str, "str | bool | int | float"]


class KnownHold(NamedTuple):
    """The hold of a grant: its name and token, the context of its span, and when that has ended."""

    key: tuple[str, int]
    context: Any
    ended_ns: int | None = None


def undisturbed(
    method: Callable[Concatenate[SpanRecorder, P], None],
) -> Callable[Concatenate[SpanRecorder, P], None]:
    """Log what it raises (rule 4)."""

    @wraps(method)
    def call(self: SpanRecorder, /, *args: P.args, **named: P.kwargs) -> None:
        try:
            method(self, *args, **named)
        except Exception:  # noqa: BLE001  a sampler's, a processor's or an exporter's
            log_exception("a span could not be made (%s)", method.__name__)

    return call


class SpanRecorder:
    """Makes spans with one tracer, for all coordinators and fences of the process."""

    def __init__(self, provider: TracerProvider | None) -> None:
        from opentelemetry import trace

        self._api: Any = trace
        self._tracer: Any = trace.get_tracer("holdfast", tracer_provider=provider)
        self.begin()

    def begin(self) -> None:
        """With nothing open, and nothing known (rule 6)."""
        self._mutex = threading.RLock()  # reentrant: a signal handler may release a lease in the middle of one
        self._open: dict[str, Any] = {}
        """The spans of holds, by owner."""
        self._known: OrderedDict[str, KnownHold] = OrderedDict()
        """Holds, ended ones too, by owner."""
        self._owners: dict[tuple[str, int], str] = {}
        """Of those: the owner by name and token."""

    @undisturbed
    def granted(self, claim: Claim, token: int, engine: str, family: str, waited: float, at_once: bool) -> None:
        """The span of an acquisition that has ended, and the beginning of that of its hold."""
        now = time.time_ns()
        facts = _facts(claim, engine, family) | {"holdfast.lock.token": _integer(token)}
        outcome = _outcome("at_once" if at_once else "waited", waited)
        asked = self._past(f"acquire {family}", now, waited, facts | outcome)
        links = [self._api.Link(asked.get_span_context())]
        hold = self._tracer.start_span(f"hold {family}", attributes=facts, links=links, start_time=now)
        with self._mutex:
            self._open[claim.owner] = hold
            self._remember(claim.owner, KnownHold((claim.spec.name, token), hold.get_span_context()))

    @undisturbed
    def missed(self, claim: Claim, engine: str, family: str, waited: float, outcome: str, error: BaseException) -> None:
        """The span of an acquisition that ended without a grant. A single try that finds it taken is no error."""
        facts = _facts(claim, engine, family) | _outcome(outcome, waited)
        failure = None if outcome in ("not_free", "cancelled") else error
        self._past(f"acquire {family}", time.time_ns(), waited, facts, failure)

    @undisturbed
    def happened(self, claim: Claim, kind: str, facts: dict[str, str | float]) -> None:
        """An event of a hold."""
        with self._mutex:
            if (span := self._open.get(claim.owner)) is not None:
                span.add_event(f"holdfast.{kind}", {f"holdfast.{name}": _plain(facts[name]) for name in facts})

    @undisturbed
    def released(
        self, claim: Claim, token: int, engine: str, family: str, took: float, error: Exception | None = None
    ) -> None:
        """The span of a release, as a child of its hold."""
        known = self._known.get(claim.owner)
        now = time.time_ns() if known is None or known.ended_ns is None else known.ended_ns
        facts = _facts(claim, engine, family) | {"holdfast.lock.token": _integer(token)}
        self._past(f"release {family}", now, took, facts, error, known)

    @undisturbed
    def ended(self, owner: str, reason: str, beside: CallBeside | None = None) -> None:
        """The end of a hold; `reason`: why it was lost, if it was. A second call does nothing."""
        now = time.time_ns()
        with self._mutex:
            span = self._open.pop(owner, None)
            if span is None:
                return
            if owner in self._known:
                self._known[owner] = self._known[owner]._replace(ended_ns=now)
            if reason:
                span.set_attribute("holdfast.lost.reason", reason)
                span.set_status(self._api.Status(self._api.StatusCode.ERROR, f"the lease was lost: {reason}"))
        if beside is None:
            span.end(now)
        else:
            beside(span.end, now)

    @undisturbed
    def refused(self, kind: str, resource: str, token: int, mark: int | None, successor: str = "") -> None:
        """A refusal at a fence, linked to the holds of both tokens as far as they are known (rule 3)."""
        links = []
        with self._mutex:
            owners = {"refused": self._owners.get((resource, token), "")}
            owners["mark"] = successor if mark is None else successor or self._owners.get((resource, mark), "")
            for role, owner in owners.items():
                if (known := self._known.get(owner)) is not None:
                    links.append(self._api.Link(known.context, {"holdfast.fence.role": role}))
        facts: Facts = {"holdfast.fence.kind": kind, "holdfast.fence.resource": resource}
        facts["holdfast.lock.token"] = _integer(token)
        if mark is not None:
            facts["holdfast.fence.mark"] = _integer(mark)
        span = self._tracer.start_span(f"refuse {kind}", attributes=facts, links=links)
        span.set_status(self._api.Status(self._api.StatusCode.ERROR, f"token {token} is stale, the mark is {mark}"))
        span.end()

    def context_of(self, owner: str) -> Any:
        """A context in which the span of a hold is the current one; None if that span is not known."""
        known = self._known.get(owner)
        return None if known is None else self._beneath(known)

    def _beneath(self, hold: KnownHold) -> Any:
        return self._api.set_span_in_context(self._api.NonRecordingSpan(hold.context))

    def _past(
        self,
        name: str,
        now: int,
        seconds: float,
        facts: Facts,
        error: BaseException | None = None,
        parent: KnownHold | None = None,
    ) -> Any:
        """A span that ends now and took so many seconds: a request to the engine."""
        context = None if parent is None else self._beneath(parent)
        began = now - int(seconds * 1e9)
        span = self._tracer.start_span(name, context, self._api.SpanKind.CLIENT, facts, start_time=began)
        if error is not None:
            text = f"{type(error).__name__}: {without_passwords(str(error))}"
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(self._api.Status(self._api.StatusCode.ERROR, text))
        span.end(now)
        return span

    def _remember(self, owner: str, hold: KnownHold) -> None:
        self._known[owner] = hold
        self._owners[hold.key] = owner
        if len(self._known) > KNOWN_COUNT:
            oldest, past = self._known.popitem(last=False)
            if self._owners.get(past.key) == oldest:
                del self._owners[past.key]


def _facts(claim: Claim, engine: str, family: str) -> Facts:
    spec = claim.spec
    return {
        "holdfast.engine": engine,
        "holdfast.lock.name": spec.name,
        "holdfast.lock.family": family,
        "holdfast.lock.mode": spec.mode,
        "holdfast.lock.owner": claim.owner,
        "holdfast.lock.ttl": spec.ttl,
    }


def _outcome(outcome: str, waited: float) -> Facts:
    return {"holdfast.acquire.outcome": outcome, "holdfast.acquire.waited": waited}


def _integer(number: int) -> int | str:
    return number if number <= MAX_INTEGER_COUNT else str(number)


def _plain(value: str | float) -> str | float:
    return without_passwords(value) if isinstance(value, str) else value


def _after_fork_in_child() -> None:
    if isinstance(Observer.spans, SpanRecorder):
        Observer.spans.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
