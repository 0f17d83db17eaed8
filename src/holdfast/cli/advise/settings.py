"""The settings of a leaf, from how long the work takes and how quick the engine is. Pure.

1. The ttl is 5 to 10 times the p99 of the work: a round number, the largest that is not above 10 times.
2. It is not below `LEAST_TTL_S`, nor below 10 times the p99 of the engine: a pause or a slow reply would end the lease
   of a live holder. It is not above `LONGEST_TTL_S` where 5 times the p99 would be: a lease is renewed while the work
   goes on, so the work may be longer.
3. Whoever waits waits for longer than a ttl, so that it outlives a dead holder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...model import MAX_DURATION_S
from .tree import Leaf

TTL_S = 30.0
"""What a lock has that names none."""
LEAST_TTL_S = 1.0
LONGEST_TTL_S = 300.0
TTL_RATIO = 10
HANG_RATIO = 20
"""Work that takes so many times its p99 hangs."""
ROUND = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""At least one of these, times a power of ten, is between 5 and 10 times any number."""


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: float | str
    why: str

    @property
    def text(self) -> str:
        return self.value if isinstance(self.value, str) else f"{self.value:g}"


def settings_of(leaf: Leaf, p99: float | None, engine_p99: float | None = None) -> list[Setting]:
    """The settings of a leaf for work with this p99 (None: not measured), on an engine with that one."""
    ttl = _ttl(p99, engine_p99)
    known = {
        "ttl": ttl,
        "timeout": Setting("timeout", 2 * number(ttl), "longer than a ttl: whoever waits outlives a dead holder"),
        "lock_delay": Setting("lock_delay", number(ttl), "time for a late request of a dead holder to arrive"),
    }
    if p99 is not None:
        hang = min(max(number(ttl), round_up(HANG_RATIO * p99)), MAX_DURATION_S)
        known["max_hold"] = Setting("max_hold", hang, f"work that takes {HANG_RATIO} times its p99 hangs: end its hold")
    return [known[name] for name in leaf.settings if name in known] + [
        Setting(extra.name, extra.value, extra.why) for extra in leaf.more
    ]


def number(setting: Setting) -> float:
    return float(setting.value)


def _ttl(p99: float | None, engine_p99: float | None) -> Setting:
    least, of_what = LEAST_TTL_S, "below that, a short pause ends the lease of a live holder"
    if engine_p99 is not None and round_up(TTL_RATIO * engine_p99) > least:
        least = round_up(TTL_RATIO * engine_p99)
        of_what = f"10 times the p99 of this engine ({engine_p99 * 1000:.3g} ms), so that a slow reply ends no lease"
    if p99 is None:
        return Setting("ttl", max(TTL_S, least), "the default; measure the work, and take 5 to 10 times its p99")
    wanted = round_down(TTL_RATIO * p99)
    if wanted < least:
        return Setting("ttl", least, f"10 times the p99 of {p99:g} s is less, but {of_what}")
    if 5 * p99 > LONGEST_TTL_S:
        why = "the work is long, and its lease is renewed while it goes on: a longer ttl only makes others wait longer"
        return Setting("ttl", max(LONGEST_TTL_S, least), why)
    ratio = wanted / p99
    return Setting("ttl", wanted, f"{ratio:.3g} times the p99 of {p99:g} s (5 to 10 times is good)")


def round_down(value: float) -> float:
    """The largest round number that is not above `value`.

    >>> round_down(4.0), round_down(70), round_down(0.123)
    (4.0, 60.0, 0.1)
    """
    return max(each for each in _around(value) if each <= value * (1 + 1e-9))


def round_up(value: float) -> float:
    """The smallest round number that is not below `value`.

    >>> round_up(4.0), round_up(70), round_up(0.123)
    (4.0, 80.0, 0.15)
    """
    return min(each for each in _around(value) if each >= value * (1 - 1e-9))


def _around(value: float) -> list[float]:
    power = math.floor(math.log10(value))
    return [float(f"{step * 10.0**tens:.6g}") for tens in (power - 1, power, power + 1) for step in ROUND]
