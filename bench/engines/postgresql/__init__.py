"""One PostgreSQL server, on a free loopback port, without waiting for a disk. Its peers are advisory locks.

The floor of the lock table is two committed updates of one row through psycopg 3; the floor of session locks is the
advisory pair by hand, which stands beside it as "bare". Statements are counted by the server (pg_stat_statements).
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import verdicts
from bench.limits import Finding, Limit
from bench.model import Engine, Layout, Target
from bench.outcomes import HandoffResult, Report
from tests.postgresql.server import initialised, new_folder

SESSION, ADVISORY, NOTIFY = "holdfast session", "bare advisory lock", "bare NOTIFY and a statement"
COUNT = (
    "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements "
    "WHERE toplevel AND query !~* '^(set|show|begin|commit)'"
)


@contextmanager
def start(folder: Path) -> Iterator[Target]:
    home = new_folder("hf-bench-pg-")  # not in `folder`: the server runs as another user
    server = initialised(home, {"shared_preload_libraries": "pg_stat_statements", "max_connections": "300"})
    try:
        server.start()
        server.execute("CREATE EXTENSION pg_stat_statements")
        server.execute("CREATE TABLE floor (id integer PRIMARY KEY, value bigint NOT NULL) WITH (fillfactor = 40)")
        server.execute("INSERT INTO floor SELECT n, 0 FROM generate_series(1, 100000) n")
        yield Target(url=server.url(), folder=folder)
    finally:
        server.stop(signal.SIGQUIT)
        shutil.rmtree(home, ignore_errors=True)


def statements(target: Target) -> int:
    import psycopg

    with psycopg.connect(target.url, autocommit=True) as connection:
        row = connection.execute(COUNT).fetchone()
        assert row is not None
        return int(row[0])


def _p50(report: Report, name: str) -> float | None:
    return next((each.p50 for each in report.pair if each.contender == name), None)


def _pairs(title: str, over: str, under: str, fits: Callable[[float], bool], limit: str) -> Limit:
    def find(report: Report) -> Finding | None:
        one, other = _p50(report, over), _p50(report, under)
        return Finding(f"{limit}: {one / other:.2f}", fits(one / other)) if one and other else None

    return Limit(title, find)


def _session_pair(report: Report) -> Finding | None:
    uses = [each.p50 for each in report.pair if each.contender.startswith(SESSION)]
    raw = _p50(report, ADVISORY)
    return Finding(f"≤ 1.5: {max(uses) / raw:.2f}", max(uses) / raw <= 1.5) if uses and raw else None


def _ours(report: Report, layout: Layout) -> HandoffResult | None:
    found = (each for each in report.handoff if each.layout == str(layout) and each.hold == 0.005)
    return next((each for each in found if each.contender == "holdfast"), None)


def _gap(layout: Layout) -> Limit:
    def find(report: Report) -> Finding | None:
        ours, unit = _ours(report, layout), _p50(report, NOTIFY)
        if ours is None or unit is None:
            return None
        return Finding(f"≤ 2.0: {ours.handed_p50 / unit:.2f}", ours.handed_p50 <= 2 * unit)

    return Limit(f"hand-off gap p50, × (NOTIFY round trip + a statement), {layout}, hold 5 ms", find)


def _count(layout: Layout) -> Limit:
    def find(report: Report) -> Finding | None:
        ours = _ours(report, layout)
        if ours is None or ours.commands is None:
            return None
        return Finding(f"≤ 4: {ours.commands:.2f}", ours.commands <= 4)

    return Limit(f"statements for each acquisition, {layout}, hold 5 ms", find)


LAYOUTS = (Layout(1, 8), Layout(1, 64), Layout(8, 1))
ENGINE = Engine(
    name="postgresql",
    start=start,
    best_peers=("pals",),
    layouts=LAYOUTS,
    commands=statements,
    command="statements",
    limits=(
        verdicts.pair_at_most(2.0),
        Limit("session lock pair, × the raw advisory pair, the dearest use", _session_pair),
        _pairs("pals, × holdfast's session lock", "pals", SESSION, lambda ratio: ratio >= 4, "≥ 4"),
        *(limit(layout) for layout in LAYOUTS for limit in (_gap, _count)),
    ),
)
