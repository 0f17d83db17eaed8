"""The alerts as a file of rules for Prometheus, with its times filled in."""

from __future__ import annotations

import re
from importlib import resources

from ..errors import Misconfigured

WINDOW, PENDING = "5m", "5m"
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
DURATION = re.compile(r"(0|(\d+(ms|s|m|h|d))+)")


def rules(window: str = WINDOW, pending: str = PENDING) -> str:
    """`window`: over how long rates are taken; `pending`: for how long a condition holds before its alert fires.

    >>> "alert: HoldfastFenceRefused" in rules(window="10m")
    True
    """
    for what, value in (("window", window), ("pending", pending)):
        if not DURATION.fullmatch(value) or (what == "window" and not re.search("[1-9]", value)):
            raise Misconfigured(f"{what} is {value!r}; give a duration as Prometheus writes it: 30s, 5m, 1h30m")
    text = resources.files(__package__).joinpath("rules.yml").read_text("utf-8")
    body = text.partition("groups:")[2]
    for word, value in (("WINDOW", window), ("WINDOW_SECONDS", f"{_seconds(window):g}"), ("PENDING", pending)):
        body = re.sub(rf"\b{word}\b", value, body)
    return f"# Alerts of holdfast; made by: holdfast rules --window {window} --pending {pending}\ngroups:{body}"


def _seconds(duration: str) -> float:
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)(ms|s|m|h|d)", duration))
