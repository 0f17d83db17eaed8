"""Leader election: a mutex whose lease is lost early, so that the leader has stopped before the next one starts.

1. A leader is told to stop a third of the ttl before its validity ends (lease 15 s, deadline 10 s): its body has
   that long to end, and only then can another be granted. Of an engine that grants less than the ttl, it is a third of
   what it grants (see `_core.lease`).
2. Candidates wait in line; the first to campaign leads next.
3. The leader can be seen by all (`leader`, `observe`). An observer goes on through outages.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .._core.flow import Flow, Sleep
from ..errors import BackendUnavailable, Misconfigured
from ..model import ClaimView, LockSpec, check_seconds
from ..ports import AnyBackend, Surveys
from .decorator import check_awaited, check_blocking
from .options import Options
from .specs import mutex

POLL_INTERVAL_S = 0.25
"""How often an observer polls."""
UNSEEN_TOKEN = -1
"""In place of a token, which is never negative: nothing was observed yet, so any answer is a change."""


def candidacy(name: str, options: Options) -> LockSpec:
    """The spec of a candidate."""
    given: Options = {**options}
    if given.get("margin") is None:
        ttl = given.get("ttl", 30.0)
        check_seconds("ttl", ttl, name, above=0)
        given["margin"] = ttl / 3
    return mutex(name, given, "election")


def leader(backend: AnyBackend, name: str) -> Flow[ClaimView | None]:
    """The present leader."""
    if not isinstance(backend, Surveys):
        raise Misconfigured(f"{backend.scheme} cannot be surveyed, so the leader of {name!r} cannot be seen")
    views = yield from backend.survey(name, exact=True)
    for view in views:
        if view.name == name:
            for claim in view.holders:
                if claim.live:
                    return claim
    return None


def next_leader(backend: AnyBackend, name: str, known: int | None) -> Flow[ClaimView | None]:
    """Wait until the leader is not the one with the token `known` (None: no leader; `UNSEEN_TOKEN`: unknown)."""
    while True:
        try:
            now = yield from leader(backend, name)
        except BackendUnavailable:
            pass  # the leader is unknown: the last one that was seen counts
        else:
            if (None if now is None else now.token) != known:
                return now
        yield Sleep(POLL_INTERVAL_S)


def check_body(body: Callable[..., Any], stop: object, name: str) -> None:
    """For threads: what leads runs when it is called, and what stops the campaign can be looked at."""
    check_blocking(body, f"the election {name!r}", "run")
    check_stop(stop, f"the election {name!r}", awaits=False)


def check_awaited_body(body: Callable[..., Any], stop: object, name: str) -> None:
    """For tasks: the `wait` of any other event would hold up the whole loop."""
    check_awaited(body, f"the election {name!r}", "run")
    check_stop(stop, f"the election {name!r}", awaits=True)


def check_stop(stop: object, what: str, *, awaits: bool) -> None:
    """An event that says when to stop: of asyncio, if it is awaited; else one that can be looked at."""
    waits = inspect.iscoroutinefunction(getattr(stop, "wait", None))
    if stop is None or (waits if awaits else callable(getattr(stop, "is_set", None)) and not waits):
        return
    raise Misconfigured(f"stop of {what} is {'an asyncio' if awaits else 'a threading'}.Event, not {stop!r}")
