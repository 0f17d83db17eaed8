"""The flows of `once`, one request of somebody at a time, in an order that chance decides: with deaths between any two
requests, pauses beyond the ttl, and lost replies. Nobody touches a record, so every pause may be taken for a death.

1. The effect of a key is applied once at most, behind the fence.
2. Whoever is told a result is told the same one, and its effect is there.
3. No key is stuck: after the storm the next one gets a result.

And with a bug planted, one of the first schedules shows it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast._core.coordinator_core import CoordinatorCore
from holdfast._core.flow import NOW, Flow
from holdfast.errors import FenceRejected
from holdfast.model import LockSpec
from holdfast.recipes import once
from holdfast.recipes.once_options import plan_once
from holdfast.recipes.once_record import AttemptRecord, Origin
from tests.support import record_bugs
from tests.support.interleavings import Schedule, Somebody

TICK_US = 1000
PLAN = plan_once(
    "payments", keep=3600, takeover="rerun", ttl=0.1, on_error="retry", wait=None, codec=None, max_bytes=1000
)
SPEC = once.AttemptSpec(PLAN, "k", PLAN.key_of("k"), "", None)
SEEDS_COUNT = 400
STEPS_COUNT = 3000


class World(Schedule):
    """Callers of one key, and the resource that it is about."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, TICK_US)
        self.numbers = itertools.count(1)
        self.mark = 0
        self.effects: list[int] = []
        """The tokens of those who have applied the effect."""
        self.told: list[str] = []
        """The results that callers were told."""

    @property
    def core(self) -> CoordinatorCore:
        def new_owner(spec: LockSpec) -> str:
            return f"owner-{next(self.numbers)}"

        def end(hold: Any) -> Flow[bool]:
            yield NOW
            return True

        return cast(
            CoordinatorCore,
            SimpleNamespace(
                backend=self.backend, new_owner=new_owner, keep=lambda hold, waited: hold, end=end, observer=None
            ),
        )

    def call(self) -> None:
        self.start("caller", self._call(self.core))

    def _call(self, core: CoordinatorCore) -> Flow[None]:
        take_over = 0
        while True:
            begun = yield from once.begin(core, SPEC, Origin("host", 1, 0.0), "actor", lambda running: None, take_over)
            if isinstance(begun, once.Dead):
                take_over = begun.version
                continue
            break
        if isinstance(begun, once.Finished):
            self.told.append(begun.record.result.decode())
            return
        token = begun.hold.token
        yield NOW  # somebody may be stopped here, with its token in hand
        self.apply(token)
        yield NOW
        result = f"by {token}"
        yield from once.complete(core, PLAN, begun, result.encode())
        self.told.append(result)

    def apply(self, token: int) -> None:
        """The effect, in one transaction behind the fence, unless it is there."""
        if token < self.mark:
            raise FenceRejected("k", token, self.mark)
        self.mark = token
        if not self.effects:
            self.effects.append(token)

    def between(self) -> None:
        if self.chance.random() < 0.03 and len(self.people) < 4:
            self.call()

    def ended(self, who: Somebody) -> None:
        assert who.ended in ("done", "FenceRejected", "OutcomeUnknown", "BackendUnavailable"), who.ended

    def run(self) -> None:
        for _ in range(3):
            self.call()
        self.storm(STEPS_COUNT // 10, dies=0.02, lose=0.05, pauses=0.03, longest_pause=300)
        self.calm()
        self.call()
        self.calm()

    def check(self) -> None:
        assert len(self.effects) == 1, "the effect was not applied once"
        assert self.told, "the key is stuck"
        assert len(set(self.told)) == 1, f"several results: {sorted(set(self.told))}"


@pytest.mark.parametrize("batch", range(4))
def test_one_effect_and_one_result_in_any_order(batch: int) -> None:
    for seed in range(batch * SEEDS_COUNT, (batch + 1) * SEEDS_COUNT):
        world = World(seed)
        world.run()
        world.check()


def _the_fence_is_away(patch: pytest.MonkeyPatch) -> None:
    def apply(self: World, token: int) -> None:
        if token not in self.effects:
            self.effects.append(token)

    patch.setattr(World, "apply", apply)


def _what_is_given_up_is_done(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AttemptRecord, "over", lambda self, state, error: self.done(b"nothing"))


@pytest.mark.parametrize(
    "plant",
    [
        record_bugs.results_are_written_unconditionally,
        record_bugs.the_look_is_not_the_claim,
        _the_fence_is_away,
        _what_is_given_up_is_done,
    ],
    ids=lambda plant: plant.__name__,
)
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for seed in range(10 * SEEDS_COUNT):
        world = World(seed)
        world.run()
        try:
            world.check()
        except AssertionError:
            return
    raise AssertionError("no schedule has shown it")
