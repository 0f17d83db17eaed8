"""A hash as a server keeps it, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HashValue:
    """`fields` is never changed: whoever writes puts another hash."""

    fields: Mapping[bytes, bytes]
