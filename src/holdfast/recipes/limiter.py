"""The limiter: so many per period, with a burst. The rule is in `_core.gcra`, the one number at the engine.

"5/s" lets through at most 5 in any second, a fifth of a second apart. More at once must be allowed: with
`burst=5` five pass together, and then up to 9 in the first second, because the burst comes on top of the rate.
A caller that may wait books a time in the same request, and sleeps until then: served in order, without a retry.
A booked time is spent even if its caller is cancelled before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .._core.flow import Flow, Sleep
from ..errors import Misconfigured, NotAcquired
from ..model import MAX_DURATION_S, check_name
from ..ports import AnyBackend, Limits
from .durations import UNITS_S

REMEMBERED_COUNT = 1024
_RATE = re.compile(r"\s*(\d+)\s*/\s*(\d+(?:\.\d+)?)?\s*([a-z]+)\s*")


@dataclass(frozen=True, slots=True)
class Rate:
    """One in `interval` seconds in the long run, at most `burst` at once (1 unless it is named)."""

    name: str
    interval: float
    burst: int

    def __str__(self) -> str:
        return f"one in {self.interval:g} s with a burst of {self.burst}"

    @classmethod
    def parse(cls, name: str, rate: str, burst: int | None) -> Rate:
        """
        >>> Rate.parse("mail/user7", "5/s", None)
        Rate(name='mail/user7', interval=0.2, burst=1)
        >>> Rate.parse("mail/user7", "100 / 10 min", 1).interval
        6.0
        """
        check_name(name)
        match = _RATE.fullmatch(rate) if isinstance(rate, str) else None
        unit = UNITS_S.get(match[3]) if match else None
        if match is None or unit is None or int(match[1]) == 0 or float(match[2] or 1) == 0:
            raise Misconfigured(
                f"the rate of {name!r} is {rate!r}; write it as '5/s', '100/min' or '20/2h' (ms, s, min, h, day)"
            )
        count = int(match[1])
        interval = float(match[2] or 1) * unit / count
        if interval < 1e-6:
            raise Misconfigured(f"the rate of {name!r} is {rate!r}; at most one in a microsecond can be counted")
        if burst is None:
            burst = 1
        if isinstance(burst, bool) or not isinstance(burst, int) or burst < 1:
            raise Misconfigured(f"burst of {name!r} is a whole number from 1, not {burst!r}")
        if burst * interval > MAX_DURATION_S:
            raise Misconfigured(f"burst of {name!r} is {burst}: more than a year at that rate; make it smaller")
        return cls(name, interval, burst)


class RateRegistry:
    """The rates that one coordinator uses: one name, one rate.

    Two rates for one name would share its one number at the engine and spend each other's allowance.
    """

    __slots__ = ("_rates",)

    def __init__(self) -> None:
        self._rates: dict[str, Rate] = {}

    def get(self, rate: Rate) -> Rate:
        """This rate; raises `Misconfigured` if the name has had another one lately."""
        known = self._rates.get(rate.name, rate)
        if known != rate:
            raise Misconfigured(
                f"{rate.name!r} is limited to {known} in this coordinator already, and now to {rate}; "
                "give both the same rate and burst, or another name"
            )
        if len(self._rates) >= REMEMBERED_COUNT:
            self._rates.clear()
        self._rates[rate.name] = rate
        return rate


def pass_now(backend: AnyBackend, rate: Rate, cost: int) -> Flow[bool]:
    """Whether `cost` may pass now."""
    ok, _ = yield from _limits(backend, rate, cost).allow(rate.name, rate.interval, rate.burst, cost, 0.0)
    return ok


def pass_in_turn(backend: AnyBackend, rate: Rate, cost: int, timeout: float | None) -> Flow[None]:
    """Book a time within `timeout` and wait for it; raises `NotAcquired` at once if there is none."""
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout >= 0):
        raise Misconfigured(f"timeout of {rate.name!r} is {timeout!r}; it is None, or seconds from 0")
    reserve = MAX_DURATION_S if timeout is None else min(timeout, MAX_DURATION_S)
    ok, wait = yield from _limits(backend, rate, cost).allow(rate.name, rate.interval, rate.burst, cost, reserve)
    if not ok:
        raise NotAcquired(
            rate.name, 0.0, advice=f"its turn comes in {wait:.3g} s: wait longer (timeout=), or ask less often"
        )
    if wait > 0:
        yield Sleep(wait)


def used(backend: AnyBackend, rate: Rate) -> Flow[float]:
    """How much of the burst is spent now. More than the burst never passes at once: asking for it spends nothing."""
    limits = _limits(backend, rate, 1)
    _, wait = yield from limits.allow(rate.name, rate.interval, rate.burst, rate.burst + 1, 0.0)
    return max(0.0, wait / rate.interval - 1)


def _limits(backend: AnyBackend, rate: Rate, cost: int) -> Limits:
    if not isinstance(backend, Limits):
        raise Misconfigured(f"{backend.scheme} cannot limit rates ({rate.name!r}); use an engine with a clock")
    if isinstance(cost, bool) or not isinstance(cost, int) or not 1 <= cost <= rate.burst:
        raise Misconfigured(
            f"cost at {rate.name!r} is a whole number from 1 to its burst of {rate.burst}, not {cost!r}"
        )
    return backend
