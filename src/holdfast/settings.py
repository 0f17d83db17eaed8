"""Where to connect when nothing is said: `HOLDFAST_URL`, or a file in the user's state folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from .backends import open_engine
from .errors import Misconfigured
from .model import check_name
from .ports import Engine


def default_url() -> str:
    """`HOLDFAST_URL` if it is set, else the embedded file of this user."""
    if url := os.environ.get("HOLDFAST_URL"):
        return url
    if sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support"
    else:
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return "sqlite://" + quote(str(folder / "holdfast" / "locks.db"))


def engine_for(url: str | None, namespace: str, require: Iterable[str], request_timeout: float) -> Engine:
    """The engine of a URL, once it promises what is required."""
    check_name(namespace, "namespace")
    if "/" in namespace:
        raise Misconfigured(f"namespace {namespace!r} has a '/'; use a plain word")
    if not (isinstance(request_timeout, (int, float)) and request_timeout > 0):
        raise Misconfigured(f"request_timeout is a number of seconds above 0, not {request_timeout!r}")
    required = {require} if isinstance(require, str) else set(require)
    engine = open_engine(url or default_url(), namespace, request_timeout)
    engine.backend.promises.demand(required, engine.backend.scheme)
    return engine
