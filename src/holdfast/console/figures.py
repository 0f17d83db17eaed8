"""The five figures with a limit, as far as a process that only reads can know them.

Two sources. What programs count (`scrape`) is exact, and is shown where an address of theirs was given. What the engine
shows (here) is there always, and is another thing: how it is at this moment, not how it was for 99 % of all.

1. acquisition: the longest wait of anybody who waits now, of the ttl of whom it waits for.
2. contention: of the names that are held now, the part that somebody waits for.
3. hold: of the hold that is nearest to its end now, the part of its ttl that has passed since its last renewal.
4. timeouts: no survey shows them. refusals: what fences have kept, where one was named (`--fence`).

The ttl of a hold is the most that was ever seen left of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from ..model import ClaimView, LockView
from ..observe.engine_view import by_family
from ..observe.stats import (
    ACQUISITION_LIMIT_RATIO,
    CONTENTION_LIMIT_RATIO,
    HOLD_LIMIT_RATIO,
    TIMEOUTS_LIMIT_RATIO,
    LimitVerdict,
)
from .fences import FenceReadings
from .scrape import ScrapedMetrics
from .snapshot import SurveySnapshot
from .watcher import Watcher

TtlOf = Callable[[str, ClaimView], float]


def engine_verdicts(views: Iterable[LockView], ttl_of: TtlOf) -> tuple[LimitVerdict, ...]:
    """The figures that a survey shows, each with its limit; None where it does not.

    >>> hold = ClaimView("o-1", 1, 1, "db1", 7, since=0.0, remaining=2.0, age=9.0)
    >>> [verdict.value for verdict in engine_verdicts([LockView("a", 1, (hold,), ())], lambda name, claim: 10.0)]
    [None, 0.0, 0.8, None, None]
    """
    held = contended = 0
    passed: list[float] = []
    waits: list[float] = []
    for view in views:
        ttls = {claim.owner: ttl_of(view.name, claim) for claim in view.holders if claim.live}
        held += bool(ttls)
        contended += bool(ttls and view.waiters)
        passed += [
            1 - claim.remaining / ttls[claim.owner] for claim in view.holders if claim.live and ttls[claim.owner] > 0
        ]
        longest = max(ttls.values(), default=0.0)
        if view.waiters and longest > 0:
            waits.append(max(claim.age for claim in view.waiters) / longest)
    return (
        LimitVerdict("acquisition", max(waits, default=None), ACQUISITION_LIMIT_RATIO, len(waits)),
        LimitVerdict("contention", contended / held if held else None, CONTENTION_LIMIT_RATIO, held),
        LimitVerdict("hold", max(passed, default=None), HOLD_LIMIT_RATIO, len(passed)),
        LimitVerdict("timeouts", None, TIMEOUTS_LIMIT_RATIO, 0),
        LimitVerdict("refusals", None, 0, 0),
    )


def metrics(
    snapshot: SurveySnapshot, watcher: Watcher, scraped: ScrapedMetrics | None, fences: FenceReadings | None = None
) -> dict[str, Any]:
    """The five figures with their limits: what programs count, if any was named, and what the engine shows."""
    families = snapshot.cached("families", lambda: by_family(snapshot.views))
    busiest = sorted(families.items(), key=lambda each: (-each[1].waiting, -each[1].held, each[0]))
    shown = snapshot.cached("verdicts", lambda: engine_verdicts(snapshot.views, watcher.ttl))
    if fences is not None:
        shown = (*shown[:-1], LimitVerdict("refusals", fences.total, 0, fences.total))
    return {
        "engine": {
            "verdicts": [_verdict(each) for each in shown],
            "families": [{"family": family, **asdict(view)} for family, view in busiest],
        },
        "fences": None if fences is None else fences.as_data(),
        "programs": None if scraped is None else _programs(scraped),
    }


def _programs(scraped: ScrapedMetrics) -> dict[str, Any]:
    return {
        "sources": list(scraped.sources),
        "problems": scraped.problems,
        "verdicts": [_verdict(each) for each in scraped.verdicts],
        "families": [
            {
                "family": family,
                "acquired": stats.acquired,
                "held": stats.held,
                "waiting": stats.waiting,
                "lost": sum(stats.losses.values()),
                "verdicts": [_verdict(each) for each in stats.verdicts],
            }
            for family, stats in sorted(scraped.families.items())
        ],
    }


def _verdict(verdict: LimitVerdict) -> dict[str, Any]:
    return {
        "rule": verdict.rule,
        "value": verdict.value,
        "limit": verdict.limit,
        "count": verdict.count,
        "ok": verdict.ok,
    }
