"""Keeps a refusal for a blocking connection. Raises nothing, and has a bound: the refusal itself is what counts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ...fenced.refusal import FenceRefusal, may_keep, not_kept
from ...fenced.refusal_store import keep_beside
from ..adapters import ADAPTERS, Adapter
from ..fence_refusal import KEEP_TIMEOUT_S, keep_on_mysql, keep_on_postgresql, parameters_of, search_path, sqlite_file
from .runner import run


def keep_refusal(connection: Any, adapter: Adapter, resource: str, refusal: FenceRefusal) -> None:
    """Keep one refusal, before it is raised."""
    if not may_keep(adapter.dialect):
        return
    try:
        if adapter.dialect == "mysql":
            run(connection, keep_on_mysql(resource, refusal), adapter)
        elif adapter.dialect == "postgresql":
            path = run(connection, search_path(), adapter)
            _keep_beside_the_transaction(connection, adapter, path, resource, refusal)
        elif file := run(connection, sqlite_file(), adapter):
            keep_beside(adapter.dialect, file, resource, refusal)
    except Exception as error:  # noqa: BLE001  of whatever client library
        not_kept(adapter.dialect, resource, error)


def _keep_beside_the_transaction(
    connection: Any, adapter: Adapter, path: str, resource: str, refusal: FenceRefusal
) -> None:
    import psycopg

    driver = connection
    if adapter.library == "sqlalchemy":
        own = connection.connection() if hasattr(connection, "get_bind") else connection
        driver = own.connection.driver_connection
    parameters = parameters_of(driver)

    def keep() -> None:
        with psycopg.connect(**parameters) as second:
            run(second, keep_on_postgresql(path, resource, refusal), ADAPTERS["psycopg"])

    _bounded(keep)


def _bounded(work: Callable[[], None]) -> None:
    """In a thread of its own, since a server that hangs would keep this one for ever."""
    errors: list[Exception] = []

    def call() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  it is raised below
            errors.append(error)

    thread = threading.Thread(target=call, name="holdfast-refusal", daemon=True)
    thread.start()
    thread.join(KEEP_TIMEOUT_S)
    if thread.is_alive():
        raise TimeoutError(f"the database did not answer a second connection within {KEEP_TIMEOUT_S:g} s")
    for error in errors:
        raise error
