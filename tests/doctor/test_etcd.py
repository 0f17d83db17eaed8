"""Each check of etcd against members that it must complain about."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import holdfast
from holdfast.doctor import Outcome
from holdfast.doctor.checks import etcd
from tests.doctor.cases import finding_of, ids_of, look

if TYPE_CHECKING:
    from tests.etcd.cluster import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    from tests.etcd.cluster import running

    with running(3) as cluster:
        yield cluster


def test_a_cluster_that_is_well(cluster: Cluster) -> None:
    cluster.await_members()
    report = look(cluster.url)
    for name in ("members", "one-cluster", "leader", "lag", "quota"):
        assert finding_of(report, f"etcd.{name}").outcome is Outcome.FINE, finding_of(report, f"etcd.{name}")
    assert finding_of(report, "etcd.auth").outcome is Outcome.WARNING, "anybody may write"
    assert len({each.where for each in report.findings if each.id == "etcd.disk"}) == 3


def test_a_url_with_one_member_of_three(cluster: Cluster) -> None:
    assert finding_of(look(cluster.url_of(cluster.members[0])), "etcd.members").outcome is Outcome.WARNING


def test_members_that_are_away() -> None:
    from tests.etcd.cluster import await_true, running

    with running(3) as cluster:
        cluster.await_members()
        cluster.members[0].stop()
        assert finding_of(look(cluster.url), "etcd.members").outcome is Outcome.WARNING
        cluster.members[1].stop()
        last = cluster.members[2]
        await_true(lambda: not int(last.rpc("/v3/maintenance/status").get("leader", 0)), "the end of the leader")
        report = look(cluster.url)
        assert finding_of(report, "etcd.members").outcome is Outcome.FAILED
        assert finding_of(report, "etcd.leader").outcome is Outcome.FAILED


def test_members_of_two_clusters(cluster: Cluster) -> None:
    from tests.etcd.cluster import running

    with running(1) as another:
        url = f"etcd://{cluster.members[0].endpoint},{another.members[0].endpoint}"
        with etcd.examinations(url, 20.0) as found:
            seen = {each.id: each.outcome for each in found[0].findings()}
        assert seen["etcd.one-cluster"] is Outcome.FAILED


def test_a_member_that_is_full() -> None:
    from tests.etcd.cluster import await_true, b64, running

    with running(1, "--quota-backend-bytes", "200000") as cluster:
        member = cluster.members[0]

        def is_refused() -> bool:
            """Its size is known with the next flush only, so it is filled until it says so."""
            try:
                member.rpc("/v3/kv/put", key=b64(b"fill"), value=b64(b"x" * 20_000))
            except OSError:
                return True
            return False

        await_true(is_refused, "a member that is full")
        assert finding_of(look(cluster.url), "etcd.quota").outcome is Outcome.FAILED


def test_simple_tokens() -> None:
    from tests.etcd.cluster import running

    with running(1) as cluster:
        member = cluster.members[0]
        holdfast.connect(cluster.url).close()
        member.rpc("/v3/auth/user/add", name="root", password="secret")
        member.rpc("/v3/auth/role/add", name="root")
        member.rpc("/v3/auth/user/grant", user="root", role="root")
        member.rpc("/v3/auth/enable")
        report = look(cluster.url.replace("etcd://", "etcd://root:secret@"))
        finding = finding_of(report, "etcd.auth")
        assert (finding.outcome, "simple tokens" in finding.seen) == (Outcome.WARNING, True)
        assert "secret" not in str([each.seen for each in report.findings])


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("3.3.25", Outcome.FAILED),
        ("3.4.23", Outcome.WARNING),
        ("3.4.34", Outcome.WARNING),
        ("3.5.9", Outcome.WARNING),
        ("3.5.13", Outcome.FINE),
        ("3.6.1", Outcome.FINE),
    ],
)
def test_versions(said: str, outcome: Outcome) -> None:
    member = _member(said)
    finding = etcd.version.finding(member)
    assert finding is not None
    assert finding.outcome is outcome


def _member(version: str = "3.5.13", behind: int = 0, metrics: str = "") -> etcd.EtcdMember:
    member = etcd.EtcdMember(SimpleNamespace(tls=False), "127.0.0.1", 1, 1.0)  # type: ignore[arg-type]
    member.status = {"version": version, "raftIndex": str(behind), "raftAppliedIndex": "0"}
    member.metrics = metrics
    return member


def test_a_member_that_lags() -> None:
    """It cannot be had at will."""
    late, close = etcd.lag.finding(_member(behind=5000)), etcd.lag.finding(_member(behind=3))
    assert late is not None
    assert close is not None
    assert (late.outcome, close.outcome) == (Outcome.WARNING, Outcome.FINE)


@pytest.mark.parametrize(
    ("slow", "outcome"), [("0.004", Outcome.FINE), ("0.032", Outcome.WARNING), ("0.512", Outcome.FAILED)]
)
def test_a_slow_disk(slow: str, outcome: Outcome) -> None:
    name = "etcd_disk_wal_fsync_duration_seconds"
    metrics = f'{name}_bucket{{le="0.001"}} 90\n{name}_bucket{{le="{slow}"}} 100\n{name}_bucket{{le="+Inf"}} 100\n'
    finding = etcd.disk.finding(_member(metrics=metrics))
    assert finding is not None
    assert finding.outcome is outcome


def test_every_check_has_a_test() -> None:
    tested = ("members", "one-cluster", "auth", "version", "leader", "lag", "disk", "quota")
    assert ids_of("etcd") == {f"etcd.{name}" for name in tested}
