"""Bugs of `once`: what is forgotten, done twice, or overwritten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from holdfast._core import renewal
from holdfast._core.flow import NOW, Flow
from holdfast.aio import attempt, once
from holdfast.backends import execute_records
from holdfast.model import Claim, Extension
from holdfast.recipes import once_survey
from holdfast.recipes.once_record import AttemptRecord
from tests.contract.plants.plant import plant
from tests.support import record_bugs


@plant("once.a_result_is_remembered", "once.decorated_functions_are_done_once", "once.of_many_one_does_the_work")
def a_result_is_not_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AttemptRecord, "done", lambda self, result: self.over("ended", ""))


@plant("once.the_second_waits_for_the_result", "once.a_long_attempt_is_kept_alive")
def nobody_counts_as_alive(patch: pytest.MonkeyPatch) -> None:
    real = execute_records.record_view
    patch.setattr(execute_records, "record_view", lambda key, stored, at: real(key, stored, at)._replace(remaining=0.0))


@plant("once.another_payload_is_refused")
def payloads_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(once, "fingerprint_of", lambda payload, of: "")


@plant("once.an_error_is_retried_or_remembered")
def every_error_is_retried(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempt, "FAILED", "ended")


@plant("once.a_body_without_a_result_is_an_error")
def who_leaves_is_done(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AttemptRecord, "over", lambda self, state, error: self.done(b"null"))


@plant("once.a_dead_attempt_is_taken_over_as_asked")
def phases_die_with_their_attempt(patch: pytest.MonkeyPatch) -> None:
    real = AttemptRecord.next
    patch.setattr(AttemptRecord, "next", lambda *given: real(*given)._replace(phases=()))


@plant("once.a_long_attempt_is_kept_alive")
def attempts_are_not_touched(patch: pytest.MonkeyPatch) -> None:
    def renew_claims(backend: Any, claims: Sequence[Claim]) -> Flow[list[Extension]]:
        sent: float = yield NOW
        return [Extension(sent, claim.spec.ttl) for claim in claims]

    patch.setattr(renewal, "renew_claims", renew_claims)


@plant("once.what_is_remembered_can_be_looked_at_and_forgotten")
def any_token_will_do(patch: pytest.MonkeyPatch) -> None:
    real = once_survey.forget
    patch.setattr(once_survey, "forget", lambda core, name, key, token: real(core, name, key, None))


@plant("once.a_result_that_cannot_be_kept_is_in_doubt")
def done_work_is_simply_repeated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempt, "RUNNING", "ended")


plant("once.a_zombie_cannot_overwrite_its_successor")(record_bugs.results_are_written_unconditionally)
plant("once.of_many_one_does_the_work")(record_bugs.the_look_is_not_the_claim)
