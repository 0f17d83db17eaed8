"""A limit, and what a report says to it: the words in which all limits are written.

A limit finds its figure in a report, or says that it was not measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.outcomes import Report

OURS = "holdfast"


@dataclass(frozen=True, slots=True)
class Finding:
    """A figure beside its limit: `≤ 2.0: 1.62 ok`."""

    text: str
    met: bool


@dataclass(frozen=True, slots=True)
class Limit:
    """One promise of speed."""

    title: str
    find: Callable[[Report], Finding | None]
    """None when the run has not measured it."""


def at_most(figure: float, limit: float, show: Callable[[float], str]) -> Finding:
    return Finding(f"≤ {show(limit)}: {show(figure)}", figure <= limit)


def at_least(figure: float, limit: float, show: Callable[[float], str]) -> Finding:
    return Finding(f"≥ {show(limit)}: {show(figure)}", figure >= limit)


def percent(part: float) -> str:
    return f"{part * 100:.3g} %"


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def ratio(found: float) -> str:
    return f"{found:.2f}"
