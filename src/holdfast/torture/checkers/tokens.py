"""Tokens: no two grants of a name have the same, and a grant that began after another was known has the larger one.

Real time: if A's acquire had returned when B's was invoked, A's token is below B's. Grants that overlap in time may
have them in either order.
"""

from __future__ import annotations

from .finding import Finding, who
from .holds import DefiniteHold


def check(by_name: dict[str, list[DefiniteHold]]) -> Finding:
    """One violation for each grant with a token that is not its own, or not above all that were known before."""
    finding = Finding("tokens", why_not="no grant has a token")
    for name, holds in by_name.items():
        granted = [hold for hold in holds if hold.acquire.token]  # by their return
        finding.judged += len(granted)
        first: dict[int, DefiniteHold] = {}
        for hold in granted:
            other = first.setdefault(hold.acquire.token, hold)
            if other is not hold:
                story = f"{hold.acquire.client} and {other.acquire.client} were both given token {hold.acquire.token}"
                finding.broken(name, f"{story} of {name!r}", [other.acquire, hold.acquire], hold.start)
        _see_growth(finding, name, granted)
    return finding


def _see_growth(finding: Finding, name: str, granted: list[DefiniteHold]) -> None:
    highest: DefiniteHold | None = None
    known = iter(granted)
    upcoming = next(known, None)
    for hold in sorted(granted, key=lambda hold: hold.acquire.invoked):
        while upcoming is not None and upcoming.start < hold.acquire.invoked:
            if highest is None or upcoming.acquire.token > highest.acquire.token:
                highest = upcoming
            upcoming = next(known, None)
        if highest is not None and highest.acquire.token > hold.acquire.token:
            gap = (hold.acquire.invoked - highest.start) / 1e6
            story = f"{who(hold.acquire)} asked for {name!r} {gap:.1f} ms after {who(highest.acquire)} had got it"
            shown = [highest.acquire, hold.acquire]
            finding.broken(name, f"{story}, and was given a smaller token", shown, hold.start)
