"""Bugs of whoever counts."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast._core import renewal
from holdfast.model import LockSpec
from holdfast.observe import families, meter, observer
from tests.contract.plants.plant import plant


@plant("counts.outcomes_by_family")
def a_family_per_name(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(meter, "default_family", lambda name: name)
    patch.setattr(families, "default_family", lambda name: name)


@plant("counts.outcomes_by_family")
def a_try_counts_as_a_timeout(patch: pytest.MonkeyPatch) -> None:
    honest = observer.Observer.missed
    patch.setattr(
        observer.Observer, "missed", lambda self, claim, error, waited, _: honest(self, claim, error, waited, 1)
    )


@plant("counts.who_waits_is_not_granted_at_once")
def everybody_is_granted_at_once(patch: pytest.MonkeyPatch) -> None:
    honest = meter.Meter.granted

    def granted(self: meter.Meter, spec: LockSpec, waited: float, at_once: bool) -> None:
        honest(self, spec, waited, True)

    patch.setattr(meter.Meter, "granted", granted)


@plant("counts.renewals_with_the_validity_left")
def validity_is_read_after_the_renewal(patch: pytest.MonkeyPatch) -> None:
    honest = renewal.settle

    def settle(hold: Any, reply: Any, now: float, told: Any = None) -> None:
        honest(hold, reply, now)
        if told is not None:
            told.renewed(hold.claim, hold.token, hold.valid_until, now - hold.since)

    patch.setattr(renewal, "settle", settle)


@plant("counts.losses_by_reason")
def a_loss_is_no_hold(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(meter.Meter, "lost", lambda self, spec, held, reason: self.count(spec, "dropped"))


@plant("counts.an_engine_out_of_reach_and_back")
def nobody_notes_that_it_is_out_of_reach(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(observer.Observer, "unreached", lambda self, claim, error, beside=False: None)
