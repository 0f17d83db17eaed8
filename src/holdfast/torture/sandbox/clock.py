"""The clock of a server, moved by libfaketime.

1. The calendar clock is moved, the monotonic one is not: that is what an administrator, NTP or a hypervisor does.
2. The offset is read from a file at every reading of the clock, so a jump is seen by the next request.
3. libc is preloaded after libfaketime: without that Redis hangs at its start (its allocator asks for the time before
   libfaketime is ready).
"""

from __future__ import annotations

from pathlib import Path

from .sandbox import NotAvailable

_PLACES = ("/usr/lib/*/faketime/libfaketime.so.1", "/usr/local/lib/faketime/libfaketime.so.1")


def library() -> str:
    for location in _PLACES:
        for found in sorted(Path("/").glob(location.lstrip("/"))):
            return str(found)
    raise NotAvailable("libfaketime is not installed (Debian: faketime)")


class Clock:
    """The clock of one server, and how to start it so that the clock can be moved."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._library = library()
        self.offset = 0.0
        self.move(0.0)

    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": f"{self._library} libc.so.6",
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def move(self, offset: float) -> None:
        """Set the offset from the true time. The file is replaced as a whole: a server may read it at any time."""
        self.offset = offset
        new = self._file.with_suffix(".new")
        new.write_text(f"{offset:+.3f}\n")
        new.chmod(0o644)
        new.replace(self._file)
