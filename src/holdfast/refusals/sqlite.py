"""Refusals at an SQLite database: they are kept beside its file."""

from __future__ import annotations

from ..backends.sqlite.address import path_of
from ..fenced.refusal import RefusalRecord
from ..fenced.refusal_store import read_beside


def read(url: str, request_timeout: float) -> list[RefusalRecord]:
    return read_beside(str(path_of(url).resolve()))
