"""`once` beside two statements and a SELECT, each a transaction of its own."""

from __future__ import annotations

from contextlib import closing

from bench.engines.sqlite.floor import connect
from bench.measures import once
from bench.model import Target
from bench.outcomes import Figure

CONTENDERS = ()
CLAIM = "INSERT INTO hand (key) VALUES (?) ON CONFLICT DO NOTHING"
COMPLETE = "UPDATE hand SET result = ? WHERE key = ? AND result IS NULL"
READ = "SELECT result FROM hand WHERE key = ?"


def figures(target: Target, quick: bool) -> list[Figure]:
    with closing(connect(target.folder / "once.db")) as link:
        execute = link.execute
        execute("CREATE TABLE IF NOT EXISTS hand (key TEXT PRIMARY KEY, result TEXT) WITHOUT ROWID")

        def first(key: str) -> None:
            execute(CLAIM, (key,))
            execute(COMPLETE, (once.RESULT, key))

        return once.figures(target, once.ByHand(first, lambda key: execute(READ, (key,)).fetchone()), quick)
