"""Bugs of an engine that keeps records, which `once` and actors rely on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from holdfast.backends import execute_records

from .registry import Patch, bug


@bug("a write names what it replaces", "once")
def records_are_written_unconditionally(patch: Patch) -> None:
    """Whoever has read a record overwrites it, whatever it is by now: the best-known idempotency library does."""
    _ignore_version(patch, lambda expected: bool(expected))


@bug("a key has one result", "once")
def the_look_is_not_the_claim(patch: Patch) -> None:
    """Whoever thinks that there is no record overwrites the one that is there."""
    _ignore_version(patch, lambda expected: not expected)


@bug("versions strictly grow", "actors")
def versions_are_the_time(patch: Patch) -> None:
    """A version is the calendar's time, and the calendar is set back."""
    real = execute_records._swap

    def swap(table: Any, request: Any, at: Any) -> Any:
        swapped = real(table, request, at)
        if not swapped.done or swapped.record is None:
            return swapped
        stored = table.load_record(request.key)
        stored.version = at.clock
        return swapped._replace(record=execute_records.record_view(request.key, stored, at))

    patch(execute_records, "_swap", swap)


def _ignore_version(patch: Patch, when: Any) -> None:
    real = execute_records._swap

    def swap(table: Any, request: Any, at: Any) -> Any:
        stored = execute_records._load(table, request.key, at)
        if when(request.expected) and stored is not None:
            request = replace(request, expected=stored.version)
        return real(table, request, at)

    patch(execute_records, "_swap", swap)
