"""An engine under torture: nodes, a network in front of them, a URL for each client, and unsupported faults.

1. Every client has its own links, so that one client can be cut off while the others go on.
2. `cannot` has the reason for each fault that makes no sense for an engine, or that this machine cannot inject.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ...backends import SCHEMES
from ..proxy import ProxyNetwork
from ..sandbox import NotAvailable, Sandbox, ServerNode
from ..sandbox.clock import Clock, library
from ..sandbox.disk import Disk
from ..sandbox.location import Location, namespace


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What must be prepared when the engine starts, for the faults of the run."""

    clocks: bool = False
    small_disk: bool = False
    netns: bool = False
    replica: bool = False
    flushes: bool = False
    """It waits for its disk, as in production, because disk faults will be injected."""


class AsyncReplica(Protocol):
    """An engine with an asynchronous replica."""

    def lag(self) -> None:
        """Let the replica catch up, then cut it off from the primary."""
        ...

    def fail_over(self) -> None:
        """Kill the primary; the replica takes over with what it has received."""
        ...

    def disown(self) -> None:
        """The primary has lost its data, so the replica is stale. The next `lag` makes a new one."""
        ...


@dataclass(slots=True)
class TorturedEngine:
    """A running engine."""

    scheme: str
    sandbox: Sandbox
    ttl: float
    """The shortest that makes sense for a short run."""
    url: Callable[[str], str]
    """Of a client: through its own links."""
    nodes: list[ServerNode] = field(default_factory=list)
    network: ProxyNetwork | None = None
    location: Location = field(default_factory=Location)
    disks: list[Disk] = field(default_factory=list)
    cannot: dict[str, str] = field(default_factory=dict)
    replica: AsyncReplica | None = None
    forget: Callable[[], None] | None = None
    """Loses all data of the engine, where that is more than a wipe of all nodes."""
    recovery_s: float = 0.5
    """How long it needs to recover after a node has restarted."""
    longest_ttl: float = 3600.0
    counts_tokens: bool = False
    """Tokens are counted (a revision, a zxid), not timed: an engine that forgot begins again at 1."""
    steps_ahead: float = 0.0
    """A restart may put its tokens so many seconds ahead of its clock, each time."""
    sessions: bool = False
    """A hold ends with its session, not with a ttl."""
    flushes: bool = False
    """It waits for its disk before it answers."""
    leader: Callable[[], ServerNode | None] | None = None
    """The present leader, if the engine has one."""
    end_sessions: Callable[[], None] | None = None
    """End the session of every client at the engine, as an administrator does."""


def need_program(name: str, package: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if found is None:
        raise NotAvailable(f"{name} is not installed (Debian: {package})")
    return found


def need_scheme(scheme: str) -> None:
    if scheme not in SCHEMES:
        raise NotAvailable(f"this version of holdfast has no backend {scheme}")


def need_module(module: str, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise NotAvailable(f"the Python package {module} is not installed: pip install 'holdfast[{extra}]'")


@dataclass(slots=True)
class EngineSetup:
    """What the nodes of an engine share at their start, made from `EngineOptions`."""

    sandbox: Sandbox
    engine_options: EngineOptions
    user: str | None
    megabytes: int
    location: Location = field(default_factory=Location)
    disks: list[Disk] = field(default_factory=list)
    cannot: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.engine_options.netns:
            try:
                self.location = namespace(self.sandbox)
            except NotAvailable as error:
                self.cannot["netns"] = str(error)

    def folder(self, name: str) -> Path:
        """A folder of a node, on a small disk if the options say so."""
        folder = self.sandbox.new_folder(name, self.user)
        if self.engine_options.small_disk:
            try:
                self.disks.append(Disk(self.sandbox, folder, self.megabytes, self.user))
            except NotAvailable as error:
                self.cannot["disk-full"] = str(error)
        return folder

    def clock(self, folder: Path) -> Clock | None:
        if not self.engine_options.clocks:
            return None
        try:
            library()
        except NotAvailable as error:
            self.cannot["clock-forward"] = self.cannot["clock-back"] = str(error)
            return None
        return Clock(self.sandbox.folder / f"{folder.name}.clock")
