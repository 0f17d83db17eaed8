"""Each check of ZooKeeper against servers that it must complain about."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from holdfast.doctor import Outcome
from holdfast.doctor.checks import zookeeper
from holdfast.doctor.finding import HealthCheck
from tests.doctor.cases import finding_of, ids_of, look

if TYPE_CHECKING:
    from tests.zookeeper.ensemble import Ensemble

BADLY = "4lw.commands.whitelist=*\nminSessionTimeout=20000\nmaxSessionTimeout=25000\nmaxClientCnxns=8"


@pytest.fixture(scope="module")
def badly() -> Iterator[Ensemble]:
    """One server alone, with settings as bad as they get."""
    from tests.zookeeper.ensemble import running

    with running(members=1, more=BADLY) as ensemble:
        yield ensemble


@pytest.mark.parametrize("name", ["members", "acl", "session-limits", "force-sync", "connections"])
def test_a_server_with_bad_settings(badly: Ensemble, name: str) -> None:
    finding = finding_of(look(badly.url), f"zookeeper.{name}")
    assert finding.outcome is Outcome.WARNING, finding


def test_a_server_that_tells_nothing() -> None:
    from tests.zookeeper.ensemble import running

    with running(members=1, forced=True, more="4lw.commands.whitelist=srvr") as ensemble:
        report = look(ensemble.url)
        assert finding_of(report, "zookeeper.four-letter-words").outcome is Outcome.UNKNOWN
        assert finding_of(report, "zookeeper.role").outcome is Outcome.FINE
        assert "zookeeper.session-limits" not in {each.id for each in report.findings}


def test_an_ensemble_that_is_well_and_one_without_a_majority() -> None:
    from tests.zookeeper.ensemble import running

    with running(members=3, forced=True) as ensemble:
        report = look(ensemble.url)
        for name in ("members", "role", "version", "session-limits", "force-sync", "connections"):
            assert finding_of(report, f"zookeeper.{name}").outcome is Outcome.FINE, finding_of(
                report, f"zookeeper.{name}"
            )
        ensemble.members[0].stop()
        ensemble.members[1].stop()
        last = ensemble.members[2]
        while last.role:
            pass
        alone = look(ensemble.url)
        assert finding_of(alone, "zookeeper.role").outcome is Outcome.FAILED
        assert finding_of(alone, "zookeeper.members").outcome is Outcome.FAILED


def test_rights_that_are_not_everybodys(badly: Ensemble) -> None:
    import holdfast

    url = badly.url.replace("zookeeper://", "zookeeper://me:secret@") + "/mine"
    with holdfast.connect(url) as locks, locks.lock("a"):
        pass
    finding = finding_of(look(url), "zookeeper.acl")
    assert finding.outcome is Outcome.FINE, finding
    assert "secret" not in str(look(url).as_data())


@pytest.mark.parametrize(
    ("check", "said", "outcome"),
    [
        (zookeeper.version, "Zookeeper version: 3.4.14-x", Outcome.FAILED),
        (zookeeper.version, "Zookeeper version: 3.6.3-x", Outcome.WARNING),
        (zookeeper.role, "Mode: observer", Outcome.WARNING),
        (zookeeper.latency, "zk_avg_latency\t812.5\nzk_outstanding_requests\t3\n", Outcome.WARNING),
        (zookeeper.latency, "zk_avg_latency\t0.2\nzk_outstanding_requests\t4000\n", Outcome.WARNING),
        (zookeeper.latency, "zk_avg_latency\t0.2\nzk_outstanding_requests\t0\n", Outcome.FINE),
    ],
)
def test_what_a_server_would_say(check: HealthCheck[zookeeper.ZooKeeperServer], said: str, outcome: Outcome) -> None:
    """Of an older version, of an observer, and under a load that is not to be had here."""
    server = zookeeper.ZooKeeperServer(SimpleNamespace(), "127.0.0.1", 1, 1.0)  # type: ignore[arg-type]
    server.said = dict.fromkeys(zookeeper.WORDS, said)
    finding = check.finding(server)
    assert finding is not None
    assert finding.outcome is outcome


def test_every_check_has_a_test() -> None:
    tested = {"members", "acl", "session-limits", "force-sync", "connections", "role", "version", "latency"}
    assert ids_of("zookeeper") == {f"zookeeper.{name}" for name in {*tested, "four-letter-words"}}
