"""From libpq's result to rows, or to the error that the server answered with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...relational.error_mapping import Refused, Rows

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

COMMAND_OK, TUPLES_OK, PIPELINE_SYNC = 1, 2, 10
"""Of `psycopg.pq.ExecStatus`, as plain numbers: they are compared on every reply."""


def rows_of(result: PGresult) -> Rows:
    if result.status == TUPLES_OK:
        if result.ntuples == 1 and result.nfields == 1:
            return [[result.get_value(0, 0)]]
        columns = range(result.nfields)
        return [[result.get_value(row, column) for column in columns] for row in range(result.ntuples)]
    if result.status == COMMAND_OK:
        return []
    raise refused(result)


def refused(result: PGresult) -> Refused:
    from psycopg.pq import DiagnosticField

    state = result.error_field(DiagnosticField.SQLSTATE) or b"?"
    message = result.error_field(DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    return Refused(state.decode(), message.decode("utf-8", "replace").strip())
