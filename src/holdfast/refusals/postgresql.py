"""Refusals in PostgreSQL: a table in the schema of the fence's."""

from __future__ import annotations

from contextlib import closing

from ..doctor.checks.postgresql import PostgreSQLSettings
from ..fenced.refusal import RefusalRecord
from ..fenced.refusal_store import records

READ = (
    "SELECT resource, number, extract(epoch FROM refused_at), token, mark, owner FROM holdfast_refusal "
    "ORDER BY resource, number DESC"
)


def read(url: str, request_timeout: float) -> list[RefusalRecord]:
    with closing(PostgreSQLSettings(url, request_timeout)) as server:
        if server.row("SELECT to_regclass('holdfast_refusal') IS NULL")[0]:
            return []
        return records(server.connection.execute(READ).fetchall())
