"""What MariaDB keeps: rows and files of the holdfast tables, and old versions until they are purged.

A name goes a day after its last use. `clean` calls the housekeeping that requests do in passing, in a session whose
clock is a day and a minute ahead.
"""

from __future__ import annotations

import time

from bench.engines.mysql.floor import connect
from bench.model import Footprint, Storage, Target

CONTENDERS = ()
TABLES = (
    "SELECT TABLE_NAME, ENGINE = 'MEMORY', DATA_LENGTH + INDEX_LENGTH FROM information_schema.TABLES "
    "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE' AND TABLE_NAME REGEXP '^(holdfast|floor_name)'"
)
FILE = "SELECT FILE_SIZE FROM information_schema.INNODB_SYS_TABLESPACES WHERE NAME = CONCAT(DATABASE(), '/', %s)"
HISTORY = "SHOW GLOBAL STATUS LIKE 'Innodb_history_list_length'"
TIDY_COUNT = 5_000
ROUNDS_COUNT = 150
"""Over all names: one round in sixteen looks at session locks, and their names go one look later than they."""


def look(target: Target) -> Footprint:
    with connect(target) as link, link.cursor() as cursor:
        rows = size = 0
        cursor.execute(TABLES)
        for table, in_memory, length in cursor.fetchall():
            cursor.execute(f"SELECT COUNT(*) FROM {table}")
            rows += cursor.fetchone()[0]
            cursor.execute(FILE, (table,))
            found = cursor.fetchone()
            size += int(length) if in_memory or found is None else int(found[0])
        cursor.execute(HISTORY)
        return Footprint(rows, size, int(cursor.fetchone()[1]))


def clean(target: Target, seconds: float) -> None:
    end = time.monotonic() + seconds
    with connect(target) as link, link.cursor() as cursor:
        cursor.execute("SHOW PROCEDURE STATUS WHERE Name = 'holdfast_tidy' AND Db = DATABASE()")
        if cursor.fetchone():
            cursor.execute("SET @@timestamp = UNIX_TIMESTAMP() + 86460")
            rounds = 0
            while rounds < ROUNDS_COUNT and time.monotonic() < end:
                cursor.execute(f"CALL holdfast_tidy({TIDY_COUNT})")
                (last,) = cursor.fetchone()
                rounds += last is None
        cursor.execute("SET GLOBAL innodb_max_purge_lag_wait = 0")  # until all is purged
        cursor.execute("SET GLOBAL innodb_max_purge_lag_wait = 4294967295")


STORAGE = Storage(
    look,
    clean,
    "rows",
    "old versions",
    "Left: after housekeeping with a clock that is a day ahead, and a purge; a file that has grown stays as large.",
)
