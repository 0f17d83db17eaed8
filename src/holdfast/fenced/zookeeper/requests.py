"""Reads through the user's client of kazoo, and its errors by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def read(client: Any, path: str) -> Any:
    """Data and stat of a node; None if it is not there."""
    try:
        return client.get(path)
    except Exception as error:
        if means(error, "NoNodeError"):
            return None
        raise


def raise_failed(results: Sequence[Any]) -> None:
    """Raise the error that a transaction was rolled back for; all others of its results only say that it was."""
    for result in results:
        if isinstance(result, Exception) and not means(result, "RolledBackError", "RuntimeInconsistency"):
            raise result


def means(error: object, *names: str) -> bool:
    """Whether it is one of kazoo's errors. By name, so that kazoo does not have to be imported."""
    return isinstance(error, Exception) and any(base.__name__ in names for base in type(error).__mro__)
