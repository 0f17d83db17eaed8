"""The default engine: `HOLDFAST_URL`, or a file in the user's state folder."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from .backends import open_engine
from .errors import Misconfigured
from .model import Promises, check_name, check_seconds
from .observe.event import Event
from .observe.families import FamilyFunction
from .ports import AnyBackend, AnyEngine


def default_url() -> str:
    """`HOLDFAST_URL` if it is set, else the embedded file of this user.

    A variable that is set and empty is a mistake of a script or a template: a file of this machine in its place would
    lock nothing on the others.
    """
    url = os.environ.get("HOLDFAST_URL")
    if url is not None and not url.strip():
        raise Misconfigured(
            "HOLDFAST_URL is set and empty; set it to the engine's URL, or unset it to use a file of this user on this "
            "machine"
        )
    return url or user_file_url()


def user_file_url() -> str:
    """The embedded file of this user: a lock in it is one for this machine only."""
    if sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support"
    else:
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return "sqlite://" + quote(os.fsencode(folder / "holdfast" / "locks.db"))


def without_passwords(url: str) -> str:
    """A URL that can be shown: without its passwords, in the address or among the options."""
    scheme, separator, rest = url.partition("://")
    if scheme == "sqlite" or not separator:
        return url
    address, question, options = rest.partition("?")
    hosts = ",".join(_without_password(host) for host in address.split(","))
    return scheme + separator + hosts + question + re.sub(r"((?:^|&)[^=&]*pass[^=&]*=)[^&]*", r"\1…", options)


def _without_password(host: str) -> str:
    """`user:password@host` without the password, which may hold characters that should have been escaped."""
    login, at, rest = host.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{user}:…@{rest}" if colon else login + at + rest


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of `connect`, checked before anything is opened."""

    url: object
    namespace: str
    ttl: float
    timeout: float | None
    require: Iterable[str]
    request_timeout: float
    on_event: Callable[[Event], None] | None
    family: FamilyFunction | None = None

    def __post_init__(self) -> None:
        check_name(self.namespace, "namespace")
        if "/" in self.namespace:
            raise Misconfigured(f"namespace {self.namespace!r} has a '/'; use a plain word")
        check_seconds("ttl", self.ttl, "connect()", above=0)
        check_seconds("request_timeout", self.request_timeout, "connect()", above=0)
        if self.timeout is not None:
            check_seconds("timeout", self.timeout, "connect()")
        if self.on_event is not None and not callable(self.on_event):
            raise Misconfigured(f"on_event is called with each event, and {self.on_event!r} cannot be called")
        if self.family is not None and not callable(self.family):
            raise Misconfigured(f"family is called with a name, and {self.family!r} cannot be called")

        Promises.known(self._required())  # before any request

    def _required(self) -> set[str]:
        return {self.require} if isinstance(self.require, str) else set(self.require)

    def engine(self) -> AnyEngine:
        return open_engine(default_url() if self.url is None else self.url, self.namespace, self.request_timeout)

    def demand(self, backend: AnyBackend) -> None:
        """Refuse an engine that does not promise what is required."""
        backend.promises.demand(self._required(), backend.scheme)
