"""A record: a small value that an engine keeps under a key, for what is built on claims and tokens (`once`).

1. `version` strictly grows per key and is never used twice, not even after the record was deleted: it is a token.
2. A record may be alive: its writer, the `owner`, has promised to touch it within the ttl. `remaining` is for how many
   seconds that promise is still good, by the engine's clock; 0 means that nobody stands behind the record.
3. Whoever writes names the version that it has read (0: there is none). Otherwise nothing is written, and it is told
   what is there.
"""

from __future__ import annotations

from typing import NamedTuple

from .errors import Misconfigured
from .model import MAX_NAME_BYTES

MAX_RECORD_BYTES = 1 << 20
MAX_KEY_BYTES = MAX_NAME_BYTES
"""A key of a record is the name of a claim, too: the one that touches it."""


class Record(NamedTuple):
    """What is there now."""

    key: str
    version: int
    data: bytes
    owner: str
    remaining: float


class Swapped(NamedTuple):
    """Whether it was written. `record` is what is there: the new one, or the one in the way (None: there is none)."""

    done: bool
    record: Record | None


def check_record(key: str, data: bytes) -> None:
    """The limits of every engine; raises `Misconfigured` before anything is sent."""
    if len(key.encode()) > MAX_KEY_BYTES:
        raise Misconfigured(f"the key {key[:40]!r}… is longer than {MAX_KEY_BYTES} bytes in UTF-8; make it shorter")
    if len(data) > MAX_RECORD_BYTES:
        raise Misconfigured(
            f"the record of {key!r} has {len(data)} bytes; at most {MAX_RECORD_BYTES} are kept: store less of it"
        )
