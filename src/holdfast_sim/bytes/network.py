"""What becomes of each connection between a process and a machine.

1. A fate is drawn when a process dials: most connections are well; the others are one of `profile.CONNECTION_FATES`.
   A fate that has been drawn lasts: a connection that went half open stays so when the other faults are over.
2. A process may be cut off from a machine for a time: what is sent meanwhile arrives when that is over, as with TCP,
   and attempts to connect are not answered.
3. A piece may be late by more than any timeout. Those behind it wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._core.flow import Endpoint

from ..connections import NEVER_S
from ..process import Process
from ..servers.model import Server

if TYPE_CHECKING:
    from .machine import Listener
    from .world import ByteWorld

LONGEST_PIECE_COUNT = 24
"""Into so many pieces at most the bytes of one write are cut."""
MEAN_BYTES = 400
"""After so many bytes, on average, a connection meets its fate."""
LATE_S = 3.0
"""No piece is later than this."""


class ByteNetwork:
    """Implements `connections.Net`."""

    def __init__(self, world: ByteWorld) -> None:
        self._world = world
        self.listeners: dict[str, Listener] = {}
        self._cut_until: dict[tuple[int, str], float] = {}

    def server(self, endpoint: Endpoint) -> Server | None:
        listener = self.listeners.get(endpoint.host)
        return listener if listener is not None and listener.up else None  # type: ignore[return-value]

    def cut(self, process: Process, host: str, seconds: float) -> None:
        self._world.fault("process cut off")
        self._world.trace(process.name, "is cut off from {} for {:.3f} s", host, seconds)
        self._cut_until[process.number, host] = self._world.timeline.now + seconds

    def cut_for(self, process: Process, host: str) -> float:
        """For how much longer."""
        return max(0.0, self._cut_until.get((process.number, host), 0.0) - self._world.timeline.now)

    def fate(self, process: Process, endpoint: Endpoint) -> DrawnFate:
        world = self._world
        kind = ""
        profile = world.profile
        if profile.fate_ratio and world.faults_active() and world.chance.random() < profile.fate_ratio:
            kind = world.chance.choice(profile.fates)
            world.fault(f"connection {kind}")
        world.trace(process.name, "dials {}{}", endpoint, f" ({kind})" if kind else "")
        return DrawnFate(world, process, endpoint.host, kind)


class DrawnFate:
    """The fate of one connection."""

    def __init__(self, world: ByteWorld, process: Process, host: str, kind: str) -> None:
        self._world = world
        self._network = world.network
        self._process = process
        self._host = host
        self._kind = kind
        self._left = NEVER_S
        """Bytes until it happens."""
        if kind in ("reset", "half open", "deaf"):
            self._left = int(world.chance.expovariate(1.0 / MEAN_BYTES))
        elif kind == "silent":
            self._left = 0

    def accepted(self) -> float:
        listener = self._network.listeners.get(self._host)
        if self._kind == "unanswered" or listener is None or listener.lost:
            return NEVER_S
        if self._network.cut_for(self._process, self._host):
            return NEVER_S
        return self._delay()

    def refused(self) -> bool:
        return self._kind == "refused"

    def pieces(self, data: bytes) -> list[bytes]:
        if self._kind == "byte by byte":
            step = max(1, -(-len(data) // LONGEST_PIECE_COUNT))
            return [data[at : at + step] for at in range(0, len(data), step)]
        if 0 < self._left < len(data):
            at = int(self._left)
            return [data[:at], data[at:]]
        return [data]

    def reset(self) -> bool:
        return self._kind == "reset" and self._left <= 0

    def to_server(self, data: bytes) -> float:
        if self._left <= 0 and self._kind != "deaf":
            return NEVER_S
        self._left -= len(data)
        return self._delay()

    def to_client(self, data: bytes) -> float:
        if self._left <= 0:  # one that is deaf goes on sending
            return NEVER_S
        self._left -= len(data)
        return self._delay()

    def _delay(self) -> float:
        world = self._world
        chance, profile = world.chance, world.profile
        delay = profile.latency * (0.5 + chance.random()) + self._network.cut_for(self._process, self._host)
        if profile.tail and world.faults_active() and chance.random() < profile.tail:
            world.fault("piece late")
            delay += min(LATE_S, 0.05 / (1.0 - chance.random()))
        return delay
