"""The programs of docs/cas.md that need a server run as they are, but for its port. (`tests/test_readme.py` runs the
others.)"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.etcd.cluster import Cluster
from tests.support.redis_server import RedisServer
from tests.zookeeper.ensemble import Ensemble

PAGE = Path(__file__).parents[2] / "docs" / "cas.md"
PROGRAMS = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
USUAL = {"redis": "6379", "etcd": "2379", "kazoo": "2181"}


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_of_the_page_runs(number: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    program = PROGRAMS[number]
    (name, usual) = next(item for item in USUAL.items() if item[1] in program)
    if name == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        server.raw("FLUSHALL")
        port = server.port
    elif name == "etcd":
        cluster: Cluster = request.getfixturevalue("etcd_cluster")
        port = cluster.members[0].port
    else:
        ensemble: Ensemble = request.getfixturevalue("zookeeper_ensemble")
        port = int(ensemble.hosts.split(",")[0].rpartition(":")[2].partition("/")[0])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program.replace(usual, str(port))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_each_server_has_a_program() -> None:
    assert [sum(usual in program for program in PROGRAMS) for usual in USUAL.values()] == [2, 1, 1]
