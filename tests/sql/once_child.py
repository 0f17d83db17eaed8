"""Does some work once, and is killed after so many statements: `once_child LIBRARY URL NUMBER`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from holdfast.sql import Once
from holdfast.sql.sync import runner
from tests.sql.once_kinds import CHARGE, connect, execute


class Death:
    """Comes after the statement with this number; our own and the user's are counted."""

    def __init__(self, number: int) -> None:
        self.left = number

    def count(self) -> None:
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)


def main(library: str, url: str, number: int) -> None:
    death, ours = Death(number), runner._execute

    def counted(*said: Any) -> Any:
        result = ours(*said)
        death.count()
        return result

    setattr(runner, "_execute", counted)  # noqa: B010  to the type checker it is another function
    connection, _ = connect(library, url)
    work(connection, number, death.count)


def work(connection: Any, number: int, said: Callable[[], None]) -> Any:
    """Two statements, once; `said` is called after each, and after the commit."""
    with Once(connection, "payments", keep="24h").attempt(f"order-{number}", fingerprint=b"100") as attempt:
        if not attempt.done:
            execute(connection, CHARGE)
            said()
            execute(connection, f"INSERT INTO accounts VALUES ({100 + number}, 100)")
            said()
            attempt.complete({"charged": number})
    connection.commit()
    said()
    return attempt.result


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
