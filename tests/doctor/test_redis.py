"""Each check of Redis against a server with the setting that it is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.doctor import Outcome
from tests.doctor.cases import finding_of, ids_of, look, with_a_wrong_clock
from tests.support.redis_server import RedisServer, other, running
from tests.support.redis_topologies import await_true, with_cluster, with_replicas, with_sentinel

AOF = {"appendonly": "yes", "appendfsync": "always"}
BY_SETTING = {
    "redis.eviction": [
        ({"maxmemory": "100mb", "maxmemory_policy": "allkeys-lru"}, Outcome.FAILED),
        ({"maxmemory": "0", "maxmemory_policy": "volatile-ttl"}, Outcome.WARNING),
        ({"maxmemory": "100mb"}, Outcome.FINE),
    ],
    "redis.memory": [
        ({"maxmemory": "1"}, Outcome.FAILED),
        ({"maxmemory": "100mb"}, Outcome.FINE),
    ],
    "redis.persistence": [
        ({}, Outcome.WARNING),
        ({"appendonly": "yes", "appendfsync": "everysec"}, Outcome.WARNING),
        (AOF, Outcome.FINE),
    ],
    "redis.min-replicas": [({"min_replicas_to_write": "1"}, Outcome.FAILED)],
    "redis.timeout": [
        ({"timeout": "5"}, Outcome.FAILED),
        ({"timeout": "60"}, Outcome.WARNING),
        ({"timeout": "3600"}, Outcome.FINE),
    ],
    "redis.protected": [
        ({"protected_mode": "no", "bind": "127.0.0.1 -192.0.2.1"}, Outcome.FAILED),
        ({"protected_mode": "no"}, Outcome.FINE),
        ({"protected_mode": "yes", "bind": "127.0.0.1 -192.0.2.1"}, Outcome.FINE),
    ],
    "redis.clients": [({"maxclients": "2"}, Outcome.FAILED), ({"maxclients": "100"}, Outcome.FINE)],
    "redis.slow-scripts": [({"busy_reply_threshold": "10"}, Outcome.WARNING), ({}, Outcome.FINE)],
}
ELSEWHERE = {"redis.version", "redis.role", "redis.persistence-works", "redis.replicas", "redis.clock", "redis.cluster"}
"""Checks with a test of their own below."""


def test_every_check_is_seen_failing() -> None:
    assert set(BY_SETTING) | ELSEWHERE == ids_of("redis")
    assert all(any(outcome is not Outcome.FINE for _, outcome in cases) for cases in BY_SETTING.values())


@pytest.mark.parametrize(
    ("check_id", "settings", "outcome"),
    [(check_id, settings, outcome) for check_id, cases in BY_SETTING.items() for settings, outcome in cases],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_setting(check_id: str, settings: dict[str, str], outcome: Outcome) -> None:
    with running(**settings) as server:
        finding = finding_of(look(server.url), check_id)
        assert finding.outcome is outcome, finding


def _directly(server: RedisServer, check_id: str) -> Outcome:
    """The check alone, on a connection of its own."""
    from holdfast.doctor.checks.redis import examinations

    with examinations(server.url, 20.0) as found:
        return next(each.outcome for each in found[0].findings() if each.id == check_id)


def test_a_server_of_before_7() -> None:
    with running(other("redis-6.2")) as server:
        assert finding_of(look(server.url), "redis.version").outcome is Outcome.WARNING


def test_a_replica() -> None:
    with with_replicas(1) as (primary, replicas):
        assert _directly(replicas[0], "redis.role") is Outcome.FAILED
        report = look(primary.url)
        assert finding_of(report, "redis.role").outcome is Outcome.FINE
        assert finding_of(report, "redis.replicas").outcome is Outcome.WARNING
        confirmed = finding_of(look(f"{primary.url}?wait_replicas=1"), "redis.replicas")
        assert confirmed.outcome is Outcome.FINE, confirmed.seen


def test_a_disk_that_cannot_be_written() -> None:
    with running(rdb_del_sync_files="no") as server:
        server.raw("CONFIG", "SET", "dbfilename", "dump.rdb")
        server.folder.joinpath("dump.rdb").mkdir()  # nobody can rename a file onto a folder
        server.raw("BGSAVE")
        await_true(lambda: b"rdb_last_bgsave_status:err" in server.raw("INFO", "persistence"), "the failure")
        assert _directly(server, "redis.persistence-works") is Outcome.FAILED


def test_a_clock_that_is_wrong(tmp_path: Path) -> None:
    with running() as server:
        assert with_a_wrong_clock("redis.clock", server.url, tmp_path) == "warning"
        assert finding_of(look(server.url), "redis.clock").outcome is Outcome.FINE


def test_the_primary_of_a_sentinel() -> None:
    with with_sentinel() as (url, _, _):
        assert finding_of(look(url), "redis.replicas").outcome is Outcome.WARNING


def test_a_cluster_is_looked_at_whole() -> None:
    with with_cluster() as nodes:
        seeds = ",".join(f"127.0.0.1:{node.port}" for node in nodes)
        report = look(f"redis+cluster://{seeds}")
        assert len({each.where for each in report.findings if each.id == "redis.cluster"}) == 3
        assert finding_of(report, "redis.cluster").outcome is Outcome.FINE
        assert _directly(nodes[0], "redis.cluster") is Outcome.FAILED  # as a single server


def test_a_user_who_may_not_see_the_settings() -> None:
    with running() as server:
        server.raw("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-config", "-acl")
        report = look(f"redis://app:secret@127.0.0.1:{server.port}")
        assert finding_of(report, "redis.eviction").outcome is Outcome.UNKNOWN
        assert finding_of(report, "redis.protected").outcome is Outcome.UNKNOWN
        assert report.exit_code() == 3
        assert "secret" not in str(report.as_data()["findings"])


def test_a_server_that_is_not_there() -> None:
    report = look("redis://127.0.0.1:1")
    assert finding_of(report, "engine.reachable").outcome is Outcome.UNKNOWN
    assert report.exit_code() == 3
