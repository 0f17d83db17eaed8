"""What a verb does in the file does not grow with those who wait: operations of SQLite's machine are counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.backends.queue_backend import Take
from holdfast.backends.sqlite.operations import StoreOperations
from holdfast.backends.sqlite.store import SQLiteStore
from holdfast.model import LockSpec
from tests.relational.long_lines import MANY_COUNT, Ask, Cost, flat, kinds

SLACK_COUNT = 150
"""A row more costs some twenty operations; a line of two thousand that is looked at costs tens of thousands."""


@kinds
def test_the_same_for_many(tmp_path: Path, specs: list[LockSpec]) -> None:
    lines = iter(range(10))
    opened: list[StoreOperations] = []

    def line() -> tuple[Ask, Cost]:
        store = SQLiteStore(tmp_path / "locks.db", f"ns{next(lines)}", "host")
        store._file._used = -100 * MANY_COUNT  # it is not tidied meanwhile
        operations = StoreOperations(store)
        opened.append(operations)
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        def ask(asked: Any) -> Any:
            reply = operations.quick(asked)
            if reply is None:
                reply = operations.take(asked, "") if isinstance(asked, Take) else operations.whole(asked)
            return reply

        def cost(asked: Any) -> int:
            before = steps
            store._file._db.set_progress_handler(count, 1)
            ask(asked)
            store._file._db.set_progress_handler(None, 1)
            return steps - before

        return ask, cost

    try:
        flat(specs, line, SLACK_COUNT)
    finally:
        for operations in opened:
            operations.close()
