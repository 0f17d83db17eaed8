"""What MariaDB's errors mean (its own numbers).

1. Of a statement that was killed nobody knows how far it came, and whether its transaction is open still: the
   connection is closed, so that the server rolls back what is not committed.
2. A transaction that was the victim of a deadlock (or met a row newer than its snapshot) is asked for again at once.
"""

from __future__ import annotations

from ..relational.error_mapping import ErrorMapping

DEADLOCK, TOO_NEW = 1213, 1020
AGAIN = frozenset({DEADLOCK, TOO_NEW})
TRIES_COUNT = 10
KILLED = frozenset({1053, 1317, 1927, 1969, 3024})
"""Interrupted, shut down or too long."""

ERRORS = ErrorMapping(
    "MariaDB",
    permanent={
        **dict.fromkeys((1044, 1142, 1143, 1370), "grant this user what the head of `holdfast schema mysql` names"),
        **dict.fromkeys(
            (1146, 1305),
            "the lock table is gone; connect again to have it made, or run the output of `holdfast schema mysql`",
        ),
    },
    gone=frozenset({1290, 1792, 1836, 4031}) | KILLED,
    killed=KILLED,
)
