"""What `holdfast advise` says is true: the code of every leaf runs, and the engines keep what they are said to keep."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.cli.advise.advice import code_of
from holdfast.cli.advise.settings import settings_of
from holdfast.cli.advise.tree import Leaf, the_tree

TREE = the_tree()
Fixture = Callable[[str], Any]
SERVERS: dict[str, Callable[[Fixture], dict[str, str]]] = {
    "redis": lambda fixture: {"REDIS_URL": fixture("redis_server").url},
    "etcd": lambda fixture: {"ETCD_URL": f"http://{fixture('etcd_cluster').members[0].endpoint}"},
    "zookeeper": lambda fixture: {"ZOOKEEPER_HOSTS": fixture("zookeeper_ensemble").hosts},
}
"""The variables by which the code of a leaf finds its server."""
ENGINES: dict[str, Callable[[Fixture], str]] = {
    "sqlite": lambda fixture: f"sqlite://{fixture('tmp_path')}/locks.db",
    "redis": lambda fixture: fixture("redis_server").url,
    "redlock": lambda fixture: fixture("redlock_servers").url(),
    "postgresql": lambda fixture: fixture("postgresql_server").url("postgres"),
    "mysql": lambda fixture: fixture("mariadb_server").url("mysql"),
    "etcd": lambda fixture: fixture("etcd_cluster").url,
    "zookeeper": lambda fixture: fixture("zookeeper_ensemble").url,
}


def run(leaf: Leaf, p99: float | None, folder: Path, environment: dict[str, str]) -> None:
    code = code_of(leaf, settings_of(leaf, p99))
    if leaf.language == "console":
        command = ["sh", "-e", "-c", "\n".join(line.removeprefix("$ ") for line in code.splitlines())]
    else:
        command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(
        command,
        cwd=folder,
        env={
            **os.environ,
            "HOLDFAST_URL": f"sqlite://{folder}/locks.db",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), f"{leaf.name} failed:\n{code}\n{done.stderr}"


@pytest.mark.parametrize("leaf", TREE.leaves.values(), ids=lambda leaf: leaf.name)
def test_the_code_of_a_leaf_runs_and_runs_again(leaf: Leaf, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    environment = SERVERS[leaf.server](request.getfixturevalue) if leaf.server else {}
    for p99 in (0.4, None):
        run(leaf, p99, tmp_path, environment)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_keeps_what_the_tree_does_not_say_it_lacks(engine: str, request: pytest.FixtureRequest) -> None:
    facts = TREE.engines[engine]
    asked_for = {promise for leaf in TREE.leaves.values() for promise in (*leaf.needs, *leaf.wants)}
    with holdfast.connect(ENGINES[engine](request.getfixturevalue), namespace="advise") as locks:
        lacking = {promise for promise in asked_for if promise not in locks.promises}
    assert lacking <= facts.cannot.keys() | facts.weak.keys()


def test_every_engine_of_the_tree_is_looked_at() -> None:
    assert TREE.engines.keys() - {"none"} == ENGINES.keys()
