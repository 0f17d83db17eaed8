"""Which tests go to the same worker, and in which order, where several workers share the tests (pytest-xdist).

1. Tests of one file stay together: they share the fixtures of their module. The contract is one file for all engines,
   so its tests stay together by engine and body; planted bugs share nothing and go by themselves.
2. Most tests wait for a ttl or a server, so there are more workers than cores. Scopes that mostly compute are the
   exception: HEAVY_COUNT of them run at a time, as long as there is something else to do.
3. An idle etcd cluster takes 5 % of a core, an idle ZooKeeper ensemble 2 %; each worker has its own. So a scope goes
   to a worker that has its servers, and CLUSTERS_COUNT workers start them, as long as there is something else to do.
4. Long scopes come first, so that nobody waits for the last one.
5. A test that ends its worker has failed, and is not given to the next worker: there it would end that one, too, until
   the time of the run is over. The rest of its scope goes on elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HEAVY_COUNT = 1
CLUSTERS_COUNT = 3
CONTRACT = "tests/contract/test_contract.py::"
ALONE = "tests/contract/test_promises_can_fail.py::"
HEAVY = (
    "tests/sim/",
    "tests/likeness/",
    "tests/sqlite/",
    "tests/test_bench",
    "tests/test_package.py",
    "tests/redlock/test_model.py",
)
"""They compute for more than half of their time."""
LONG = ("tests/torture/test_scenarios.py", "tests/torture/test_torture.py", "tests/contract/test_contract.py")
"""They take minutes."""
CLUSTERS = ("etcd", "zookeeper")


def scope_of(nodeid: str) -> str:
    """Tests with the same scope go to the same worker.

    >>> scope_of("tests/unit/test_line.py::test_it[1::2]")
    'tests/unit/test_line.py'
    >>> scope_of("tests/contract/test_contract.py::test_promise[redis-expiry.a_silent_holder-sync]")
    'tests/contract/test_contract.py redis sync'
    """
    file, _, name = nodeid.partition("::")
    if nodeid.startswith(CONTRACT):
        words = name.partition("[")[2].rstrip("]").split("-")
        return f"{file} {words[0]} {words[-1]}"
    return nodeid if nodeid.startswith(ALONE) else file


def cluster_of(scope: str) -> str | None:
    """The servers that are costly to have, if it needs any.

    >>> cluster_of("tests/contract/test_contract.py etcd sync"), cluster_of("tests/unit/test_line.py")
    ('etcd', None)
    """
    return next((name for name in CLUSTERS if name in scope), None)


def next_scope(
    waiting: Iterable[str], mine: Iterable[str], running: Iterable[str], others: Mapping[Any, set[str]]
) -> str:
    """The scope for a worker that has had the scopes `mine`, while other workers run `running` and have had `others`.

    >>> next_scope(["tests/sim/a.py", "tests/b.py"], [], ["tests/sim/c.py"], {})
    'tests/b.py'
    >>> next_scope(["tests/sim/a.py"], [], ["tests/sim/c.py"], {})
    'tests/sim/a.py'
    >>> next_scope(["tests/a.py", "tests/etcd/b.py"], ["tests/etcd/c.py"], [], {})
    'tests/etcd/b.py'
    >>> next_scope(["tests/etcd/a.py", "tests/b.py"], [], [], {n: {"tests/etcd/c.py"} for n in range(3)})
    'tests/b.py'
    >>> next_scope(["tests/b.py", "tests/torture/test_scenarios.py"], [], [], {})
    'tests/torture/test_scenarios.py'
    """
    has = {cluster_of(scope) for scope in mine} - {None}
    heavy = sum(scope.startswith(HEAVY) for scope in running)
    count = {name: sum(any(name in scope for scope in scopes) for scopes in others.values()) for name in CLUSTERS}

    def cost(scope: str) -> tuple[bool, bool, bool]:
        cluster = cluster_of(scope)
        too_many = cluster is not None and cluster not in has and count[cluster] >= CLUSTERS_COUNT
        late = (scope.startswith(HEAVY) and heavy >= HEAVY_COUNT) or too_many
        return late, not scope.startswith(LONG), cluster not in has

    return min(waiting, key=cost)


def without_crashed(workload: Mapping[str, Mapping[str, bool]]) -> tuple[str | None, dict[str, dict[str, bool]]]:
    """The test in which a worker ended, if it had any left, and the scopes that others must finish.

    >>> without_crashed({"a": {"a::1": True}, "b": {"b::1": True, "b::2": False, "b::3": False}})
    ('b::2', {'b': {'b::1': True, 'b::2': True, 'b::3': False}})
    >>> without_crashed({"a": {"a::1": False}})
    ('a::1', {})
    >>> without_crashed({"a": {"a::1": True}})
    (None, {})
    """
    crashed = next((test for tests in workload.values() for test, done in tests.items() if not done), None)
    left = {scope: {test: done or test == crashed for test, done in tests.items()} for scope, tests in workload.items()}
    return crashed, {scope: tests for scope, tests in left.items() if not all(tests.values())}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Take the place of `--dist loadfile`."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped, unused-ignore]

    class Spread(LoadScopeScheduling):  # type: ignore[misc, unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

        def _assign_work_unit(self, node: Any) -> None:
            others = {one: set(work) for one, work in self.assigned_work.items() if one is not node}
            running = [
                scope for one in others for scope, tests in self.assigned_work[one].items() if not all(tests.values())
            ]
            chosen = next_scope(self.workqueue, self.assigned_work.get(node, ()), running, others)
            self.workqueue.move_to_end(chosen, last=False)
            super()._assign_work_unit(node)

        def remove_node(self, node: Any) -> str | None:
            crashed, left = without_crashed(self.assigned_work.pop(node))
            self.workqueue.update(left)
            for one in self.assigned_work:
                self._reschedule(one)
            return crashed

    return Spread(config, log)
