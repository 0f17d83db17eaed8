"""A server of either engine, as the tests of what both promise see it: databases, sessions, and who holds what.

`tests/postgresql/house.py` and `tests/mysql/house.py` each make one.
"""

from __future__ import annotations

import signal
from contextlib import AbstractContextManager
from typing import Any, Protocol


class House(Protocol):
    scheme: str
    """Of the lock table; session locks are at `scheme+session`."""

    def new_url(self) -> str:
        """Of the lock table in a new, empty database."""
        ...

    def holder(self, url: str, name: str) -> int | None:
        """The session that holds the session lock of this name in the namespace `holdfast`."""
        ...

    def sessions(self, url: str) -> list[int]:
        """Of everybody who uses this database through holdfast."""
        ...

    def end_session(self, session: int) -> None: ...

    def execute(self, url: str, statement: str) -> list[tuple[Any, ...]]:
        """One statement in this database; the rows that it answers with."""
        ...

    def locking(self, url: str, statement: str) -> AbstractContextManager[None]:
        """A transaction with this statement, open for as long as the block lasts."""
        ...

    def forget_sessions(self, url: str) -> None:
        """What a crash of the server forgets of session locks."""
        ...

    def dialling(self, url: str) -> Any:
        """What makes connections that take the orders of `codec`."""
        ...

    def codec(self, namespace: str) -> Any: ...

    def stop(self, how: signal.Signals) -> None: ...

    def start(self) -> None: ...


def of_sessions(url: str) -> str:
    """The same database for session locks."""
    return url.replace("://", "+session://", 1)
