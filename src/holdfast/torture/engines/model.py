"""What an engine under torture is: nodes, a network in front of them, a URL for each client, and what it cannot suffer.

1. Every client has its own links, so that one client can be cut off while the others go on.
2. A fault that makes no sense for an engine stands in `cannot` with the reason; so does one beyond this machine.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ...backends import SCHEMES
from ..arena import Node, NotHere, Site
from ..arena.clock import Clock, library
from ..arena.disk import Disk
from ..arena.place import Place, namespace
from ..proxy import Network


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a run will want to do to the engine, and what has therefore to be prepared at its start."""

    clocks: bool = False
    small_disk: bool = False
    netns: bool = False
    replica: bool = False
    flushes: bool = False
    """Its disk will be slow, so it has to wait for it, as in production."""


class FailsOver(Protocol):
    """An engine with an asynchronous replica."""

    def lag(self) -> None:
        """A replica that has heard everything so far, and from now on hears nothing."""
        ...

    def fail_over(self) -> None:
        """The primary dies; the replica, as far as it heard, takes its place."""
        ...

    def disown(self) -> None:
        """The primary has another history now: the replica is none any more. The next `lag` makes a new one."""
        ...


@dataclass(slots=True)
class Engine:
    """An engine that runs."""

    scheme: str
    site: Site
    ttl: float
    """The shortest that makes sense for a short run."""
    url: Callable[[str], str]
    """Of a client: through its own links."""
    nodes: list[Node] = field(default_factory=list)
    network: Network | None = None
    place: Place = field(default_factory=Place)
    disks: list[Disk] = field(default_factory=list)
    cannot: dict[str, str] = field(default_factory=dict)
    replica: FailsOver | None = None
    forget: Callable[[], None] | None = None
    """Amnesia of the whole engine, where it is not just a wipe of all nodes."""
    mends_for: float = 0.5
    """How long it needs after a node came back."""
    longest_ttl: float = 3600.0
    counts_tokens: bool = False
    """Tokens are counted (a revision, a zxid), not timed: an engine that forgot begins again at 1."""
    steps_ahead: float = 0.0
    """A restart may put its tokens so many seconds ahead of its clock, each time."""
    sessions: bool = False
    """Holds live with a connection, not with a ttl."""
    flushes: bool = False
    """It waits for its disk before it answers."""
    leader: Callable[[], Node | None] | None = None
    """Who leads at this moment, where one does."""
    end_sessions: Callable[[], None] | None = None
    """End the session of every client at the engine, as an administrator does."""


def need_program(name: str, package: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if found is None:
        raise NotHere(f"{name} is not installed (Debian: {package})")
    return found


def need_scheme(scheme: str) -> None:
    if scheme not in SCHEMES:
        raise NotHere(f"this version of holdfast has no backend {scheme}")


def need_module(module: str, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise NotHere(f"the Python package {module} is not installed: pip install 'holdfast[{extra}]'")


@dataclass(slots=True)
class Ground:
    """What the nodes of an engine share at their start, made from the wishes."""

    site: Site
    wishes: Wishes
    user: str | None
    megabytes: int
    place: Place = field(default_factory=Place)
    disks: list[Disk] = field(default_factory=list)
    cannot: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.wishes.netns:
            try:
                self.place = namespace(self.site)
            except NotHere as error:
                self.cannot["netns"] = str(error)

    def folder(self, name: str) -> Path:
        """A folder of a node, on a small disk if one is wished for."""
        folder = self.site.new_folder(name, self.user)
        if self.wishes.small_disk:
            try:
                self.disks.append(Disk(self.site, folder, self.megabytes, self.user))
            except NotHere as error:
                self.cannot["disk-full"] = str(error)
        return folder

    def clock(self, folder: Path) -> Clock | None:
        if not self.wishes.clocks:
            return None
        try:
            library()
        except NotHere as error:
            self.cannot["clock-forward"] = self.cannot["clock-back"] = str(error)
            return None
        return Clock(self.site.folder / f"{folder.name}.clock")
