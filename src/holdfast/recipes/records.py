"""The records of an engine, for the recipes that are built on them."""

from __future__ import annotations

from typing import cast

from ..errors import Misconfigured
from ..ports import AnyBackend, Records

_KEEPERS: set[type] = set()
"""Backends that have been seen to keep records."""


def records_of(backend: AnyBackend, name: str) -> Records:
    """Its records; raises `Misconfigured` where it keeps none."""
    if backend.__class__ in _KEEPERS:  # `isinstance` with a protocol takes longer than the rest of an attempt
        return cast(Records, backend)
    if not isinstance(backend, Records):
        backend.promises.demand({"records"}, f"{backend.scheme} ({name!r})")
        raise Misconfigured(f"{backend.scheme} keeps no records, which {name!r} needs; use another engine")
    _KEEPERS.add(backend.__class__)
    return backend
