"""One MariaDB server, on a free loopback port, without waiting for a disk. Its peers are user locks (GET_LOCK).

The floor of the lock table is two committed updates of one row through PyMySQL; the floor of session locks is the bare
GET_LOCK pair, which stands beside it as "bare". Statements are counted by the server (`Questions`): what clients send,
not what procedures do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import verdicts
from bench.limits import Finding, Limit
from bench.model import Engine, Layout, Target
from bench.outcomes import HandoffResult, Report
from tests.mysql.server import serving

SESSION, USER_LOCK, ROUSED = "holdfast session", "bare user lock", "bare KILL QUERY and a statement"
DATABASE = "bench"


@contextmanager
def start(folder: Path) -> Iterator[Target]:
    with serving({"innodb-buffer-pool-size": "64M", "max-connections": "600"}) as server:
        server.execute(f"CREATE DATABASE {DATABASE}")
        server.execute("CREATE TABLE floor (id int PRIMARY KEY, value bigint NOT NULL) ENGINE = InnoDB", DATABASE)
        server.execute("INSERT INTO floor SELECT seq, 0 FROM seq_1_to_100000", DATABASE)
        yield Target(url=server.url(DATABASE), folder=folder)


def statements(target: Target) -> int:
    from bench.engines.mysql.floor import connect

    with connect(target) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Questions'")
        return int(cursor.fetchone()[1])


def _p50(report: Report, name: str) -> float | None:
    return next((each.p50 for each in report.pair if each.contender == name), None)


def _session_pair(report: Report) -> Finding | None:
    uses = [each.p50 for each in report.pair if each.contender.startswith(SESSION)]
    raw = _p50(report, USER_LOCK)
    return Finding(f"≤ 1.4: {max(uses) / raw:.2f}", max(uses) / raw <= 1.4) if uses and raw else None


def _ours(report: Report, layout: Layout) -> HandoffResult | None:
    found = (each for each in report.handoff if each.layout == str(layout) and each.hold == 0.005)
    return next((each for each in found if each.contender == "holdfast"), None)


def _gap(layout: Layout) -> Limit:
    def find(report: Report) -> Finding | None:
        ours, unit = _ours(report, layout), _p50(report, ROUSED)
        if ours is None or unit is None:
            return None
        return Finding(f"≤ 2.0: {ours.handed_p50 / unit:.2f}", ours.handed_p50 <= 2 * unit)

    return Limit(f"hand-off gap p50, × (KILL QUERY round trip + a statement), {layout}, hold 5 ms", find)


def _count(layout: Layout) -> Limit:
    def find(report: Report) -> Finding | None:
        ours = _ours(report, layout)
        if ours is None or ours.commands is None:
            return None
        return Finding(f"≤ 5: {ours.commands:.2f}", ours.commands <= 5)

    return Limit(f"statements for each acquisition, {layout}, hold 5 ms", find)


LAYOUTS = (Layout(1, 8), Layout(1, 64), Layout(8, 1))
ENGINE = Engine(
    name="mysql",
    start=start,
    best_peers=("tooz mysql",),
    layouts=LAYOUTS,
    commands=statements,
    command="statements",
    limits=(
        verdicts.pair_at_most(2.0),
        Limit("session lock pair, × the raw GET_LOCK pair, the dearest use", _session_pair),
        *(limit(layout) for layout in LAYOUTS for limit in (_gap, _count)),
    ),
)
