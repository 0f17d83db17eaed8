"""A small disk that can be filled: a tmpfs mounted on a folder. Needs root."""

from __future__ import annotations

import errno
import shutil
import subprocess
from pathlib import Path

from .environment import environment
from .sandbox import NotAvailable, Sandbox, is_root


class Disk:
    """A disk of so many megabytes under a folder."""

    def __init__(self, sandbox: Sandbox, folder: Path, megabytes: int, user: str | None) -> None:
        if why_not():
            raise NotAvailable(why_not())
        words = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment())
        if done.returncode:
            raise NotAvailable(f"mount: {done.stderr.strip()}")
        sandbox.enter("mount", str(folder))
        if user is not None:
            shutil.chown(folder, user, user)
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Take every byte that is left."""
        with self._filler.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                try:
                    while True:
                        file.write(b"\0" * size)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def clear(self) -> None:
        self._filler.unlink(missing_ok=True)


def why_not() -> str:
    return "" if is_root() else "mounting a small disk needs root"
