"""The ledger of the demonstration: one account in a database of the user's own, with and without a fence.

Both read first and write later what they have computed, as programs do. The fenced one claims the account with its
token before it reads, and again in the transaction that writes.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from ... import Lease
from ...fenced import SQLiteFence

ACCOUNT = "account/99999"
OPENING_BALANCE = 100

_READ = "SELECT balance FROM account WHERE id = ?"
_WRITE = "UPDATE account SET balance = ? WHERE id = ?"


def create(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE account (id TEXT PRIMARY KEY, balance INTEGER NOT NULL)")
        connection.execute("INSERT INTO account VALUES (?, ?)", (ACCOUNT, OPENING_BALANCE))


def balance(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        return int(connection.execute(_READ, (ACCOUNT,)).fetchone()[0])


class Ledger:
    """A holder's access to the account."""

    def __init__(self, file: Path, fenced: bool) -> None:
        self._connection = sqlite3.connect(file, isolation_level=None)
        self._fence = SQLiteFence(self._connection) if fenced else None

    @property
    def fenced(self) -> bool:
        return self._fence is not None

    def read(self, lease: Lease) -> int:
        if self._fence is None:
            return self._balance()
        with self._fence.transaction(ACCOUNT, lease):  # claim before you read
            return self._balance()

    def write(self, lease: Lease, amount: int) -> None:
        if self._fence is None:
            self._connection.execute(_WRITE, (amount, ACCOUNT))
            return
        with self._fence.transaction(ACCOUNT, lease):  # FenceRejected if anybody newer has claimed
            self._connection.execute(_WRITE, (amount, ACCOUNT))

    def _balance(self) -> int:
        return int(self._connection.execute(_READ, (ACCOUNT,)).fetchone()[0])
