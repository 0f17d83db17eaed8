"""The file that a URL names. It loads no engine: `holdfast run` asks for it in a process that has none."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from ...errors import Misconfigured


def url_of(path: Path) -> str:
    return "sqlite://" + quote(os.fsencode(path))


def path_of(url: str) -> Path:
    """The file of a URL, whatever bytes its name has."""
    rest = url.removeprefix("sqlite://")
    if "?" in rest or "#" in rest:
        raise Misconfigured(f"{url!r}: sqlite:// takes no options; a '?' or '#' in a path is written %3F or %23")
    path = os.fsdecode(unquote_to_bytes(os.fsencode(rest)))
    if not path or path.endswith("/") or "\0" in path or path.lstrip("/") == ":memory:":
        raise Misconfigured(f"{url!r} names no file; write sqlite:///absolute/path.db, or use memory://")
    return Path(path).absolute()
