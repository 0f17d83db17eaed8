"""The file that a URL names. It loads no engine: `holdfast run` asks for it in a process that has none."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from ...errors import Misconfigured


def path_of(url: str) -> Path:
    """The file of a URL."""
    rest = url.removeprefix("sqlite://")
    if "?" in rest or "#" in rest:
        raise Misconfigured(f"{url!r}: sqlite:// takes no options; a '?' or '#' in a path is written %3F or %23")
    path = unquote(rest)
    if not path or path.endswith("/") or path == "/:memory:":
        raise Misconfigured(f"{url!r} names no file; write sqlite:///absolute/path.db, or use memory://")
    return Path(path).absolute()
