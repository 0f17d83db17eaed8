"""What PostgreSQL keeps: rows of the holdfast tables, their indexes, and dead rows until they are vacuumed.

A name goes a day after its last use. `clean` lets the lock table's clock be a day and a minute ahead in its own
transaction, in which it calls the housekeeping that requests do in passing; then it vacuums.
"""

from __future__ import annotations

import time

from bench.engines.postgresql.floor import connect
from bench.model import Footprint, Storage, Target

CONTENDERS = ()
TABLES = "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'm') AND relname ~ '^(holdfast|floor_name)'"
AHEAD = """
CREATE OR REPLACE FUNCTION pg_temp.hurry(most integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    kept text := pg_get_functiondef('holdfast_now'::regproc);
    left_ bigint;
BEGIN
    EXECUTE replace(kept, 'SELECT ', 'SELECT 86460000000 + ');
    PERFORM holdfast_tidy(most);
    EXECUTE kept;
    SELECT (SELECT count(*) FROM holdfast_claim) + (SELECT count(*) FROM holdfast_session) INTO left_;
    RETURN left_;
END $$
"""
TIDY_COUNT = 20_000


def look(target: Target) -> Footprint:
    with connect(target) as link:
        link.execute("CREATE EXTENSION IF NOT EXISTS pgstattuple")
        rows = size = dead = 0
        for (table,) in link.execute(TABLES).fetchall():
            found = link.execute(
                "SELECT tuple_count, pg_total_relation_size(%s::regclass), dead_tuple_count FROM pgstattuple(%s)",
                (table, table),
            ).fetchone()
            assert found is not None
            rows, size, dead = rows + found[0], size + found[1], dead + found[2]
        return Footprint(rows, size, dead)


def clean(target: Target, seconds: float) -> None:
    end = time.monotonic() + seconds
    with connect(target) as link:
        tables = [table for (table,) in link.execute(TABLES).fetchall()]
        if "holdfast_claim" in tables:
            link.execute(AHEAD)
            last, still = -1, 0
            while time.monotonic() < end and still < 3:
                row = link.execute("SELECT pg_temp.hurry(%s)", (TIDY_COUNT,)).fetchone()
                assert row is not None
                still = still + 1 if row[0] == last else 0
                last = row[0]
        for table in tables:
            link.execute(f"VACUUM {table}")


STORAGE = Storage(
    look, clean, "rows", "dead rows", "Left: after housekeeping with a clock that is a day ahead, and a vacuum."
)
