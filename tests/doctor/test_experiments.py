"""Experiments on a real engine: what they measure, what they propose, and that a broken engine is found."""

from __future__ import annotations

from pathlib import Path

import pytest

import holdfast
from holdfast.doctor import Outcome, experiments
from holdfast.doctor.examine import examine
from holdfast.doctor.experiments import Experiments, round_up
from holdfast.doctor.report import Measurement
from tests.doctor.cases import finding_of, ids_of


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "MEASURE_S", 0.2)
    monkeypatch.setattr(experiments, "HANDOFF_COUNT", 5)


def test_a_file_is_measured_and_settings_are_proposed(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/locks.db"
    holdfast.connect(url).close()
    report = examine(url, experiments=True, say=lambda _: None)
    for check_id in ids_of("experiment"):
        assert finding_of(report, check_id).outcome in (Outcome.FINE, Outcome.WARNING), finding_of(report, check_id)
    assert {each.what for each in report.measurements} == {"round trip", "pair", "hand-off"}
    assert {each.name for each in report.proposals} == {"request_timeout", "ttl", "margin"}
    proposed = {each.name: each.seconds for each in report.proposals}
    assert proposed["margin"] < proposed["ttl"] / 2, "a lock would refuse it"
    with holdfast.connect(url, namespace="holdfast-doctor") as locks:
        assert locks.survey() == [], "it leaves nothing behind"


def test_a_slow_engine_gets_longer_settings() -> None:
    slow = Experiments(lambda _: None)
    slow.measurements = [Measurement("round trip", 10, {"p50": 0.5, "p99": 0.8, "max": 1.0})]
    proposed = {each.name: each.seconds for each in slow.proposals()}
    assert proposed == {"request_timeout": 20.0, "ttl": 100.0, "margin": 5.0}


def test_a_holder_that_does_not_notice_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "HOLDER", experiments.HOLDER.replace("lease.check()", "pass"))
    with holdfast.connect(f"sqlite://{tmp_path}/locks.db", namespace="holdfast-doctor") as locks:
        finding = next(
            each
            for each in Experiments(lambda _: None).run(locks, f"sqlite://{tmp_path}/locks.db")
            if each.id == "experiment.stopped-holder"
        )
    assert finding.outcome is Outcome.FAILED
    assert "'valid'" in finding.seen


def test_a_lock_that_is_not_granted_again_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "HOLDER", experiments.HOLDER.replace("float(sys.argv[3])", "3600"))
    monkeypatch.setattr(experiments, "GRACE_S", 1.0)
    with holdfast.connect(f"sqlite://{tmp_path}/locks.db", namespace="holdfast-doctor") as locks:
        finding = next(
            each
            for each in Experiments(lambda _: None).run(locks, f"sqlite://{tmp_path}/locks.db")
            if each.id == "experiment.stopped-holder"
        )
    assert finding.outcome is Outcome.FAILED


def test_a_round_number_is_not_below() -> None:
    assert [round_up(seconds) for seconds in (0.0001, 0.011, 0.5, 3.0)] == [0.01, 0.02, 0.5, 5.0]
