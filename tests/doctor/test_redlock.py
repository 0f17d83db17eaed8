"""Each check of a quorum, on nodes that it must complain about."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.doctor import Outcome, Report
from holdfast.doctor.checks.redlock import examinations
from holdfast.torture.sandbox.clock import Clock
from tests.doctor.cases import finding_of, ids_of, look
from tests.redlock.quorums import quorum
from tests.support.redis_server import running
from tests.support.redis_topologies import with_replicas


def directly(url: str) -> Report:
    """Without a lock."""
    with examinations(url, 20.0) as found:
        return Report(url, tuple(finding for each in found for finding in each.findings()))


def test_every_check_has_a_test() -> None:
    tested = ("number", "majority", "independence", "nodes", "clocks")
    assert ids_of("redlock") == {f"redlock.{name}" for name in tested}


def test_nodes_of_one_machine_and_an_even_number() -> None:
    with quorum(4) as servers:
        report = look(servers.url())
        assert finding_of(report, "redlock.number").outcome is Outcome.WARNING
        assert finding_of(report, "redlock.independence").outcome is Outcome.WARNING
        assert finding_of(report, "redlock.nodes").outcome is Outcome.FINE
        assert finding_of(report, "redlock.clocks").outcome is Outcome.FINE
        assert len({each.where for each in report.findings if each.id == "redis.persistence"}) == 4


def test_one_server_with_two_addresses() -> None:
    with quorum(2) as servers:
        first, second = servers.nodes
        url = f"redlock://127.0.0.1:{first.port},localhost:{first.port},127.0.0.1:{second.port}"
        finding = finding_of(directly(url), "redlock.independence")
        assert finding.outcome is Outcome.FAILED
        assert "are one server" in finding.seen


@pytest.mark.parametrize(("down", "outcome"), [(0, Outcome.FINE), (1, Outcome.WARNING), (2, Outcome.FAILED)])
def test_nodes_that_do_not_answer(down: int, outcome: Outcome) -> None:
    with quorum(3) as servers:
        for node in servers.nodes[:down]:
            node.stop()
        assert finding_of(directly(servers.url()), "redlock.majority").outcome is outcome


def test_a_replica_among_the_nodes() -> None:
    with with_replicas(1) as (primary, replicas), running() as alone:
        ports = (primary.port, replicas[0].port, alone.port)
        report = directly("redlock://" + ",".join(f"127.0.0.1:{port}" for port in ports))
        assert finding_of(report, "redlock.nodes").outcome is not Outcome.FINE


def test_a_node_with_another_time(tmp_path: Path) -> None:
    clock = Clock(tmp_path / "clock")
    clock.move(5.0)
    with quorum(3) as servers:
        node = servers.nodes[0]
        node.stop()
        node.words = ["env", *(f"{name}={value}" for name, value in clock.environment().items()), *node.words]
        node.start()
        assert finding_of(directly(servers.url()), "redlock.clocks").outcome is Outcome.WARNING
