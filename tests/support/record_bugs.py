"""Bugs of an engine that keeps records, to be planted: writes that look at no version."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.backends import execute_records


def results_are_written_unconditionally(patch: pytest.MonkeyPatch) -> None:
    """Whoever has read a record overwrites it, whatever it is by now."""
    _ignore_version(patch, lambda expected: bool(expected))


def the_look_is_not_the_claim(patch: pytest.MonkeyPatch) -> None:
    """Whoever thinks that there is no record overwrites the one that is there."""
    _ignore_version(patch, lambda expected: not expected)


def _ignore_version(patch: pytest.MonkeyPatch, when: Any) -> None:
    real = execute_records._swap

    def swap(table: Any, request: Any, at: Any) -> Any:
        if when(request.expected) and (stored := execute_records._load(table, request.key, at)) is not None:
            request.expected = stored.version
        return real(table, request, at)

    patch.setattr(execute_records, "_swap", swap)
