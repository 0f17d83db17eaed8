"""How records of `holdfast.sql.Once` whose time is over are removed: a few by whoever completes, in its transaction.

1. Nobody waits for them: rows that somebody else has locked are left out.
2. More are removed than are added, so that what is over does not pile up.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from .once_key import NOW, TABLE
from .statements import Exchange, Statement

FORGET_COUNT, FORGET_AMONG_COUNT = 2, 40
"""How many are removed with each that is added, and among how many of the oldest they are chosen where two may choose
the same."""


def _forget_on_postgresql() -> Exchange[None]:
    """Behind a savepoint: under REPEATABLE READ what others have removed meanwhile is an error."""
    now = NOW["postgresql"]
    over = yield Statement(f"SELECT EXISTS (SELECT 1 FROM {TABLE} WHERE kept_until <= {now}) AS over")
    if not over.rows[0]["over"]:
        return
    savepoint = "holdfast_once_forget"
    yield Statement(f"SAVEPOINT {savepoint}")
    try:
        yield Statement(
            f"DELETE FROM {TABLE} WHERE ctid = ANY (ARRAY(SELECT ctid FROM {TABLE} WHERE kept_until <= {now} "
            f"ORDER BY kept_until LIMIT {FORGET_COUNT} FOR UPDATE SKIP LOCKED))"
        )
    except Exception:  # noqa: BLE001  the next one who completes removes them
        yield Statement(f"ROLLBACK TO SAVEPOINT {savepoint}")
    yield Statement(f"RELEASE SAVEPOINT {savepoint}")


def _forget_on_mysql() -> Exchange[None]:
    """By their keys, and not by a range, which would lock the gaps between them under REPEATABLE READ."""
    offset = random.randrange(FORGET_AMONG_COUNT)
    for start in {offset, 0}:
        found = yield Statement(
            f"SELECT name, `key` FROM {TABLE} WHERE kept_until <= {NOW['mysql']} ORDER BY kept_until "
            f"LIMIT {FORGET_COUNT} OFFSET {start}"
        )
        if found.rows:
            break
    for row in found.rows:
        names = (row["name"], row["key"])
        locked = yield Statement(
            f"SELECT 1 AS locked FROM {TABLE} WHERE name = {{}} AND `key` = {{}} AND kept_until <= {NOW['mysql']} "
            "FOR UPDATE SKIP LOCKED",
            names,
        )
        if locked.rows:
            yield Statement(f"DELETE FROM {TABLE} WHERE name = {{}} AND `key` = {{}}", names)


def _forget_on_sqlite() -> Exchange[None]:
    yield Statement(
        f"DELETE FROM {TABLE} WHERE (name, key) IN (SELECT name, key FROM {TABLE} WHERE kept_until <= {NOW['sqlite']} "
        f"ORDER BY kept_until LIMIT {FORGET_COUNT})"
    )


FORGET: dict[str, Callable[[], Exchange[None]]] = {
    "postgresql": _forget_on_postgresql,
    "mysql": _forget_on_mysql,
    "sqlite": _forget_on_sqlite,
}
"""By dialect."""
