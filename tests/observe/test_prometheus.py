"""What Prometheus is shown is what was counted: in one process, and over forked workers that come and go."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.observe.histogram import RATIOS
from holdfast.observe.metric_table import METRICS, PROCESS_METRICS

prometheus_client = pytest.importorskip("prometheus_client")

from holdfast.observe import prometheus  # noqa: E402

PAGE = Path(__file__).parent.parent.parent / "docs" / "metrics.md"
WORKERS_COUNT = 3
PAIRS_COUNT = 5


def shown(registry: object) -> dict[str, float]:
    """Every sample by its name and labels, as Prometheus would read it."""
    from prometheus_client.parser import text_string_to_metric_families

    found = {}
    for family in text_string_to_metric_families(prometheus_client.generate_latest(registry).decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}"] = sample.value
    return found


def test_what_is_shown_is_what_was_counted_also_after_close() -> None:
    registry = prometheus_client.CollectorRegistry()
    prometheus.export(registry)
    prometheus.export(registry)  # a second time does nothing
    before = shown(registry)
    mine = "engine=memory,family=shown/*"

    def added(sample: str) -> float:
        return shown(registry).get(sample, 0.0) - before.get(sample, 0.0)

    with holdfast.connect("memory://shown") as locks, locks.lock("shown/7", ttl=10, renew=False):
        assert added(f"holdfast_held{{{mine}}}") == 1
        assert locks.lock("shown/7").try_acquire() is None
    with holdfast.connect("memory://shown") as locks:
        lease = locks.lock("shown/8", ttl=30).acquire()
        assert locks.evict("shown/8", lease.token)
        with pytest.raises(holdfast.LeaseLost):
            lease.renew()
        assert added(f"holdfast_losses_total{{{mine},reason=evicted}}") == 1
    assert added(f"holdfast_held{{{mine}}}") == 0
    assert added(f"holdfast_acquisitions_total{{{mine},outcome=at_once}}") == 2
    assert added(f"holdfast_acquisitions_total{{{mine},outcome=not_free}}") == 1
    assert added(f"holdfast_hold_ttl_ratio_count{{{mine}}}") == 1
    buckets = [added(f"holdfast_wait_ttl_ratio_bucket{{{mine},le={bound!r}}}") for bound in RATIOS]
    assert buckets == sorted(buckets)
    assert buckets[-1] == added(f"holdfast_wait_ttl_ratio_count{{{mine}}}") == 2
    assert added("holdfast_request_seconds_count{engine=memory,verb=take}") == 2


def test_a_refusal_is_shown() -> None:
    from holdfast.fenced.rejections import rejected

    registry = prometheus_client.CollectorRegistry()
    prometheus.export(registry)
    with holdfast.connect("memory://refused"):
        before = shown(registry).get("holdfast_refusals_total{kind=file}", 0.0)
        rejected("file", "/srv/ledger", 33, 34)
        assert shown(registry)["holdfast_refusals_total{kind=file}"] == before + 1


WORKERS = f"""
import os, signal, sys, time
import holdfast
from holdfast.observe import prometheus
from prometheus_client import CollectorRegistry, generate_latest, multiprocess

def pairs(locks, number, count={PAIRS_COUNT}):
    for each in range(count):
        with locks.lock("jobs/{{id}}", id=f"{{number}}-{{each}}", ttl=30):
            pass

def metrics():
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    return generate_latest(registry).decode()

def until(line):
    end = time.monotonic() + 60
    while line not in metrics().splitlines():
        assert time.monotonic() < end, metrics()
        time.sleep(0.05)

prometheus.export(interval=0.05)
locks = holdfast.connect("memory://prefork")
pairs(locks, "master")                                # before the fork: must not be counted again by each worker
until('holdfast_acquisitions_total{{engine="memory",family="jobs/{{id}}",outcome="at_once"}} {PAIRS_COUNT}.0')
children = []
for number in range({WORKERS_COUNT}):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(120)                              # whatever becomes of the test, nobody stays
        pairs(locks, number)                           # with the master's coordinator, as it is after a fork
        if number == 0:
            with holdfast.connect("memory://prefork") as own:  # and with one of its own
                pairs(own, "own")
            locks.close()
            os._exit(0)                                # no atexit: a close has written
        held = locks.lock("held/{{id}}", id=number).acquire()
        os.write(write, b"x")
        signal.pause()
    children.append(child)
    if number:
        os.read(read, 1)
os.waitpid(children[0], 0)
total = {PAIRS_COUNT} * (1 + {WORKERS_COUNT} + 1)
until(f'holdfast_acquisitions_total{{{{engine="memory",family="jobs/{{{{id}}}}",outcome="at_once"}}}} {{total}}.0')
until('holdfast_held{{engine="memory",family="held/{{id}}"}} 2.0')
until(f'holdfast_wait_seconds_count{{{{engine="memory",family="jobs/{{{{id}}}}"}}}} {{total}}.0')
until(f'holdfast_wait_ttl_ratio_bucket{{{{engine="memory",family="jobs/{{{{id}}}}",le="+Inf"}}}} {{total}}.0')
os.kill(children[1], signal.SIGKILL)
os.waitpid(children[1], 0)
multiprocess.mark_process_dead(children[1])            # what gunicorn's hook does
until('holdfast_held{{engine="memory",family="held/{{id}}"}} 1.0')
until(f'holdfast_acquisitions_total{{{{engine="memory",family="jobs/{{{{id}}}}",outcome="at_once"}}}} {{total}}.0')
os.kill(children[2], signal.SIGKILL)
os.waitpid(children[2], 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forked_workers_add_up(tmp_path: Path) -> None:
    environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", WORKERS], env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_page_lists_the_table() -> None:
    rows = re.findall(
        r"^\| `(holdfast_\w+)` \| (\w+) \| (\w*) \| ([\w, ]*) \| (.*) \|$", PAGE.read_text(), re.MULTILINE
    )
    table = [
        (
            metric.name + ("_total" if metric.kind == "counter" else ""),
            metric.kind,
            metric.unit,
            ", ".join((*(() if metric in PROCESS_METRICS else ("engine",)), *metric.labels)),
            metric.help,
        )
        for metric in (*METRICS, *PROCESS_METRICS)
    ]
    assert rows == table
