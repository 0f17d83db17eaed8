"""Refusals in MariaDB: a table beside the fence's."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from ..doctor.checks.mysql import MariaDBSettings
from ..fenced.refusal import RefusalRecord
from ..fenced.refusal_store import records

READ = (
    "SELECT resource, number, UNIX_TIMESTAMP(refused_at), token, mark, owner FROM holdfast_refusal "
    "ORDER BY resource, number DESC"
)
MISSING_TABLE_CODE = 1146


def read(url: str, request_timeout: float) -> list[RefusalRecord]:
    with closing(MariaDBSettings(url, request_timeout)) as server:
        with server.connection.cursor() as cursor:
            try:
                cursor.execute(READ)
            except Exception as error:
                if error.args and error.args[0] == MISSING_TABLE_CODE:
                    return []
                raise
            return records([(_text(resource), *facts) for resource, *facts in cursor.fetchall()])


def _text(resource: Any) -> str:
    return resource.decode(errors="backslashreplace") if isinstance(resource, bytes) else str(resource)
