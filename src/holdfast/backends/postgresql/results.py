"""From libpq's result to rows, or to the error that the server answered with."""

from __future__ import annotations

from typing import Protocol

from ..relational.error_mapping import Refused, Rows

COMMAND_OK_CODE, TUPLES_OK_CODE, PIPELINE_SYNC_CODE = 1, 2, 10
"""Of `psycopg.pq.ExecStatus`, as plain numbers: they are compared on every reply."""
SQLSTATE_CODE, MESSAGE_PRIMARY_CODE = ord("C"), ord("M")
"""Of `psycopg.pq.DiagnosticField`."""


class LibpqResult(Protocol):
    """What is read of libpq's."""

    @property
    def status(self) -> int: ...

    @property
    def ntuples(self) -> int: ...

    @property
    def nfields(self) -> int: ...

    @property
    def error_message(self) -> bytes: ...

    def get_value(self, row_number: int, column_number: int, /) -> bytes | None: ...

    def error_field(self, fieldcode: int, /) -> bytes | None: ...


def rows_of(result: LibpqResult) -> Rows:
    if result.status == TUPLES_OK_CODE:
        if result.ntuples == 1 and result.nfields == 1:
            return [[result.get_value(0, 0)]]
        columns = range(result.nfields)
        return [[result.get_value(row, column) for column in columns] for row in range(result.ntuples)]
    if result.status == COMMAND_OK_CODE:
        return []
    raise refused(result)


def refused(result: LibpqResult) -> Refused:
    state = result.error_field(SQLSTATE_CODE) or b"?"
    message = result.error_field(MESSAGE_PRIMARY_CODE) or result.error_message
    return Refused(state.decode(), message.decode("utf-8", "replace").strip())
