"""Packages that cannot live in one environment with ours: each in a folder of its own, when it is first needed.

Some are peers that hold redis-py to an old release, or are called like another; some bring a server, and with it a
plugin for pytest or a client that nobody asked for. None of them is ever installed with what it depends on.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(sys.prefix) / "aside"
TIMEOUT = 300.0


def aside(name: str, *requirements: str, wheels_of: str | None = None) -> Path:
    """The folder with these packages. `wheels_of`: of which Python, where only what the wheels carry counts."""
    folder = FOLDER / name
    if not (folder / ".complete").exists():
        words = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
        words += ["--no-deps", "--target", str(folder), *requirements]
        if wheels_of is not None:
            words += ["--only-binary", ":all:", "--python-version", wheels_of]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)
        if done.returncode != 0:
            raise ImportError(f"could not be installed: {done.stderr.strip()[-500:]}")
        (folder / ".complete").touch()
    return folder
