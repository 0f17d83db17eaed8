"""`once` beside two committed statements and a SELECT."""

from __future__ import annotations

from bench.engines.mysql.floor import connect
from bench.measures import once
from bench.model import Target
from bench.outcomes import Figure

CONTENDERS = ()
CLAIM = "INSERT IGNORE INTO hand (name) VALUES (%s)"
COMPLETE = "UPDATE hand SET result = %s WHERE name = %s AND result IS NULL"
READ = "SELECT result FROM hand WHERE name = %s"


def figures(target: Target, quick: bool) -> list[Figure]:
    with connect(target) as link, link.cursor() as cursor:
        execute = cursor.execute
        execute("CREATE TABLE IF NOT EXISTS hand (name varbinary(200) PRIMARY KEY, result text) ENGINE = InnoDB")

        def first(key: str) -> None:
            execute(CLAIM, (key,))
            execute(COMPLETE, (once.RESULT, key))

        return once.figures(target, once.ByHand(first, lambda key: (execute(READ, (key,)), cursor.fetchone())), quick)
