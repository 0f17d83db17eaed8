"""What `holdfast.record` says, tried on one engine through its backend: for each engine's own tests.

`run` carries out a flow of the backend on a real connection, blocking.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from holdfast._core.flow import Flow
from holdfast.model import Claim, LockSpec
from holdfast.ports import Records
from holdfast.record import Record, Swapped

Run = Callable[[Flow[Any]], Any]
KEEP_S = 3600.0


class RecordClient:
    """The verbs, carried out."""

    def __init__(self, backend: object, run: Run) -> None:
        assert isinstance(backend, Records)
        self.backend, self.run = backend, run

    def read(self, key: str) -> Record | None:
        found: Record | None = self.run(self.backend.read_record(key))
        return found

    def swap(
        self, key: str, expected: int, data: bytes | None, owner: str = "me", ttl: float = 0.0, keep: float = KEEP_S
    ) -> Swapped:
        swapped: Swapped = self.run(self.backend.swap_record(key, expected, data, owner, ttl, keep))
        return swapped

    def touch(self, *owned: tuple[str, str], ttl: float = 60.0) -> list[bool | None]:
        claims = [Claim(LockSpec(key, ttl=ttl, mode="attempt"), owner, "actor") for key, owner in owned]
        touched: list[bool | None] = self.run(self.backend.touch_records(claims))
        return touched

    def keys(self, prefix: str, after: str = "", limit: int = 100) -> list[str]:
        return [record.key for record in self.run(self.backend.list_records(prefix, after, limit))]


def check_swap(records: RecordClient) -> None:
    """Only who names the present version writes; the others are told what is there."""
    assert records.read("once:a:1") is None
    first = records.swap("once:a:1", 0, b"\x00one\xff")
    assert first.done
    assert first.record is not None
    assert first.record.version > 0
    assert records.read("once:a:1") == Record("once:a:1", first.record.version, b"\x00one\xff", "me", 0.0)
    late = records.swap("once:a:1", 0, b"two", "another")
    assert not late.done
    assert late.record == records.read("once:a:1")
    wrong = records.swap("once:a:1", first.record.version + 1, b"two")
    assert not wrong.done
    assert wrong.record is not None
    assert wrong.record.data == b"\x00one\xff"
    second = records.swap("once:a:1", first.record.version, b"two", "another")
    assert second.done
    assert second.record is not None
    assert second.record.version > first.record.version
    nothing = records.swap("once:a:2", 17, b"x")
    assert nothing == Swapped(False, None)
    assert records.read("once:a:2") is None


def check_delete(records: RecordClient) -> None:
    """What was deleted is gone, and its version is not used again."""
    first = records.swap("once:b:1", 0, b"one").record
    assert first is not None
    assert not records.swap("once:b:1", first.version - 1, None).done
    assert records.swap("once:b:1", first.version, None) == Swapped(True, None)
    assert records.read("once:b:1") is None
    again = records.swap("once:b:1", 0, b"one").record
    assert again is not None
    assert again.version > first.version


def check_touch(records: RecordClient) -> None:
    """A record lives as long as its owner touches it; nobody else can, and its version stays."""
    first = records.swap("once:c:1", 0, b"one", "me", ttl=60).record
    assert first is not None
    assert 0 < first.remaining <= 60
    records.swap("once:c:2", 0, b"one", "me", ttl=0)
    assert records.touch(("once:c:1", "me"), ("once:c:1", "other"), ("once:c:2", "me"), ("once:c:3", "me"), ttl=90) == [
        True,
        False,
        True,
        False,
    ]
    found = records.read("once:c:1")
    assert found is not None
    assert found.version == first.version
    assert 60 < found.remaining <= 90
    assert records.read("once:c:3") is None


def check_death(records: RecordClient, least_ttl: float = 0.05) -> None:
    """Without a touch nobody stands behind it any more; the record stays."""
    records.swap("once:d:1", 0, b"one", "me", ttl=least_ttl)
    end = time.monotonic() + 30
    while (found := records.read("once:d:1")) is not None and found.remaining > 0:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert found is not None
    assert found.data == b"one"


def check_forgotten(records: RecordClient, least_keep: float = 0.05) -> None:
    """After `keep` it is gone, and a new one has a higher version."""
    first = records.swap("once:e:1", 0, b"one", keep=least_keep).record
    assert first is not None
    end = time.monotonic() + 30
    while records.read("once:e:1") is not None:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert records.keys("once:e:") == []
    assert not records.swap("once:e:1", first.version, b"two").done
    again = records.swap("once:e:1", 0, b"two").record
    assert again is not None
    assert again.version > first.version


def check_list(records: RecordClient) -> None:
    """In the order of the keys, page by page; odd keys stay apart."""
    last = chr(0x10FFFF)  # nothing comes behind it, so it must not be taken for the end of a range
    keys = [f"once:f:{key}" for key in ("%", "a b", "a*", "a?b", "b", "b/c", "zürich", "[x]", last, last + "b")]
    for key in [*keys, "once:g:b", "once:f"]:
        assert records.swap(key, 0, b"x").done
    assert records.keys("once:f:") == sorted(keys)
    pages: list[str] = []
    while page := records.keys("once:f:", pages[-1] if pages else "", limit=3):
        pages += page
    assert pages == sorted(keys)
    assert records.keys(f"once:f:{last}") == [f"once:f:{last}", f"once:f:{last}b"]


CHECKS = (check_swap, check_delete, check_touch, check_death, check_forgotten, check_list)
