"""Withdraw a claim: after an acquisition that failed, at a release, at the end of a coordinator.

1. A release that did not reach the engine is tried again in the background, until it is done or the claim has expired.
2. An engine that does not answer is waited for once, however many claims there are: after `UNANSWERED_LIMIT_S` spent on
   requests without an answer, the rest is left to the background.
3. An acquisition ends within its timeout, one request timeout and `UNANSWERED_LIMIT_S`: the requests of a release have
   together the time of one, less what the acquisition is late by beyond that limit.
4. A coordinator that was closed meanwhile has withdrawn its claims: there is nothing more to do, and nothing to raise
   in place of the error that ended the acquisition.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import BackendUnavailable, Misconfigured
from ..model import Claim
from ..ports import AnyBackend
from . import backoff
from .flow import NOW, Flow, Spawn
from .timing import as_one_request

UNANSWERED_LIMIT_S = 0.25
"""How long to wait in all for an engine that does not answer, plus the request that is in flight then. It is short:
who gave a timeout wants it kept, and the background does the rest."""


def withdraw(backend: AnyBackend, claim: Claim, until: float = 0.0) -> Flow[bool]:
    """Withdraw a claim (a hold lingers `until` then); if the engine is out of reach, go on in the background."""
    try:
        return (yield from backend.release(claim, max(0.0, until - (yield NOW)) if until else 0.0))
    except Misconfigured:
        return False
    except BackendUnavailable:
        yield Spawn(release_until_done(backend, claim, until))
        return False


class Patience:
    """The time spent on requests without an answer, over several requests (rule 2).

    `due`: when the timeout of their acquisition is over (rule 3); None for who has none.
    """

    __slots__ = ("_due", "left", "lost")

    def __init__(self, due: float | None = None) -> None:
        self._due = due
        self.lost = 0.0
        self.left: list[tuple[Claim, float]] = []
        """The claims whose release did not reach the engine, and until when each lingers."""

    @property
    def exhausted(self) -> bool:
        return self.lost >= UNANSWERED_LIMIT_S

    def limit(self, release: Flow[bool], now: float) -> Flow[bool]:
        """The next release, in the time that it may take (rule 3); those before it may have been slow, too."""
        if self._due is None:
            return release
        return as_one_request(release, max(0.0, now - self._due - UNANSWERED_LIMIT_S))


def withdraw_all(backend: AnyBackend, claims: Iterable[Claim], due: float | None = None) -> Flow[None]:
    """The same for several. `due`: when the timeout of their acquisition is over (rule 3)."""
    patience = Patience(due)
    yield from release_each(backend, [(claim, 0.0) for claim in claims], patience)
    if patience.left:
        yield Spawn(release_all_until_done(backend, patience.left))


def release_each(backend: AnyBackend, claims: Iterable[tuple[Claim, float]], patience: Patience) -> Flow[None]:
    """Release one after the other, as long as the patience lasts; it records the rest."""
    for claim, until in claims:
        if patience.exhausted:
            patience.left.append((claim, until))
            continue
        began: float = yield NOW
        try:
            yield from patience.limit(backend.release(claim, max(0.0, until - began) if until else 0.0), began)
        except Misconfigured:
            pass  # closed (rule 4)
        except BackendUnavailable:
            patience.left.append((claim, until))
            patience.lost += (yield NOW) - began


def release_until_done(backend: AnyBackend, claim: Claim, until: float = 0.0) -> Flow[None]:
    """Retry a release until it is done, or the claim has ended by itself."""
    return release_all_until_done(backend, [(claim, until)])


def release_all_until_done(backend: AnyBackend, claims: list[tuple[Claim, float]]) -> Flow[None]:
    """The same for several, in one task. The pauses stay short, so that all are released soon after an outage.

    Each round begins with another claim, so that every one of them is tried, however long the outage.
    """
    now: float = yield NOW
    end = max(max(now + claim.spec.ttl, until) for claim, until in claims)
    tries, count = 0, len(claims)
    while claims and (now < end or tries < count):
        patience = Patience()
        yield from release_each(backend, claims, patience)
        claims = patience.left[1:] + patience.left[:1]
        if claims:
            yield from backoff.pause(tries, base=0.05, cap=1.0)
            tries += 1
            now = yield NOW
