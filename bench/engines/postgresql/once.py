"""`once` beside two committed statements and a SELECT, prepared."""

from __future__ import annotations

from bench.engines.postgresql.floor import connect
from bench.measures import once
from bench.model import Target
from bench.outcomes import Figure

CONTENDERS = ()
CLAIM = "INSERT INTO hand (key) VALUES (%s) ON CONFLICT DO NOTHING"
COMPLETE = "UPDATE hand SET result = %s WHERE key = %s AND result IS NULL"
READ = "SELECT result FROM hand WHERE key = %s"


def figures(target: Target, quick: bool) -> list[Figure]:
    with connect(target) as link:
        execute = link.execute
        execute("CREATE TABLE IF NOT EXISTS hand (key text PRIMARY KEY, result text)")

        def first(key: str) -> None:
            execute(CLAIM, (key,))
            execute(COMPLETE, (once.RESULT, key))

        return once.figures(target, once.ByHand(first, lambda key: execute(READ, (key,)).fetchone()), quick)
