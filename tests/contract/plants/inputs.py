"""Bugs of what is checked before anything is sent: hooks, tokens, rates."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.recipes.limiter import Rate, RateRegistry
from tests.contract.plants.plant import plant


@plant("bad_input.hooks", slips=True)
def hooks_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    for place in ("lock", "multi", "rwlock"):
        patch.setattr(f"holdfast.aio.{place}.check_hook", lambda what, hook, name: None)


@plant("bad_input.tokens", slips=True)
def tokens_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("holdfast.aio.coordinator.check_token", lambda token, of: token)


@plant("limiter.no_more_than_the_rate_in_any_period")
def the_burst_is_the_count(patch: pytest.MonkeyPatch) -> None:
    real = Rate.parse.__func__  # type: ignore[attr-defined]

    def parse(cls: type[Rate], name: str, rate: str, burst: int | None) -> Any:
        return real(cls, name, rate, int(rate.partition("/")[0]) if burst is None else burst)

    patch.setattr(Rate, "parse", classmethod(parse))


@plant("limiter.one_name_has_one_rate")
def rates_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RateRegistry, "get", lambda self, rate: rate)
