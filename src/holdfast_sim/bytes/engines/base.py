"""What the byte world needs to know of an engine: its servers, their faults, and what may be left at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast._core.flow import Flow
from holdfast._core.lease import Hold
from holdfast.errors import HoldfastError
from holdfast.ports import Opened

from ...servers.model import Memory
from ..machine import Listener

if TYPE_CHECKING:
    from ..process import ClientProcess
    from ..world import ByteWorld

REFUSED_FOR_S = 2.0
"""For so long some are told that a log-in is wrong which is right again: by a late reply, or in a pause of tries."""


class SimulatedEngine:
    """To be derived from. `name` is the scheme; `ttls` are what the workload may ask for."""

    name = ""
    ttls: tuple[float, ...] = (1.0, 2.0, 3.0)
    remains_s = 1.0
    """How long after a claim's own time something of it may be at the servers; longer if a calendar is set back."""
    after_close_s = 1.0
    """How long after a close something of that process may be left at the servers."""
    most_connections = 1
    most_tasks = 2
    """Of one process that holds nothing."""
    only_mutexes = False
    evicts = True
    """Whether an operator can end one hold."""
    call_slack_s = 0.02
    """By how much a call may be late: a few steps of its process."""

    shares_faults = True
    """Has the faults of `with_shared_faults`. MariaDB draws its own of these kinds."""
    survey_steps = 1
    """Requests that a survey is made of, each with the time of one."""

    def __init__(self, world: ByteWorld) -> None:
        self.world = world
        self.listeners: list[Listener] = []
        self._refused_until = -1.0

    def listen(self, listener: Listener) -> None:
        self.listeners.append(listener)
        self.world.network.listeners[listener.host.name] = listener

    def open(self, process: ClientProcess) -> Flow[Opened[Any, Any]]:
        raise NotImplementedError

    def may_refuse(self, error: HoldfastError) -> bool:
        """Whether a fault of the servers, and no mistake, may be why an opening ended with this."""
        return False

    # Leases

    def granted(self, hold: Hold) -> None:
        """It was handed to its holder."""

    def excludes(self, hold: Hold) -> bool:
        """Whether nobody of another process may hold beside it."""
        return True

    # Faults

    def end_connections(self, listener: Listener) -> None:
        self.world.fault("server ends connections")
        self.world.trace(listener.host.name, "ends all connections")
        listener.end_connections()

    def hang(self, listener: Listener, seconds: float) -> None:
        if not listener.up:
            return
        self.world.fault("server hangs")
        self.world.trace(listener.host.name, "hangs for {:.3f} s", seconds)
        self.begin_hang(listener)
        self.world.timeline.at(self.world.timeline.now + seconds, self.end_hang, listener)

    def begin_hang(self, listener: Listener) -> None:
        listener.hang()

    def end_hang(self, listener: Listener) -> None:
        listener.go_on()

    def stop(self, listener: Listener, seconds: float, lost: bool) -> None:
        if listener.up:
            self.world.fault("server stops")
            self.world.trace(listener.host.name, "{} for {:.3f} s", "is lost" if lost else "stops", seconds)
            listener.stop(lost)
            self.world.timeline.at(self.world.timeline.now + seconds, self.start, listener, Memory.ALL)

    def start(self, listener: Listener, memory: Memory) -> None:
        if not listener.up:
            self.world.trace(listener.host.name, "starts with {} of its memory", memory.value)
            listener.start(memory)

    def back_up(self) -> None:
        for listener in self.listeners:
            if listener.up:
                listener.server.back_up()

    def wipe(self, seconds: float, backup: bool) -> None:
        """All servers stop, and come back with nothing, or with a backup."""
        memory = Memory.BACKUP if backup else Memory.NOTHING
        self.world.fault(f"servers come back with {memory.value}")
        for listener in self.listeners:
            listener.stop()
        self.world.timeline.at(self.world.timeline.now + seconds, self._come_back, memory)

    def _come_back(self, memory: Memory) -> None:
        for listener in self.listeners:
            if listener.up:  # somebody has started it meanwhile
                listener.stop()
            self.start(listener, memory)
        self.forgotten()

    def forgotten(self) -> None:
        """All servers have come back with less than they knew."""
        self.world.invariants.forgotten()

    def jump_calendar(self, listener: Listener) -> None:
        seconds = self.world.chance.uniform(-5.0, 5.0)
        self.world.fault("calendar jumps")
        self.world.trace(listener.host.name, "its calendar jumps by {:+.3f} s", seconds)
        listener.host.jump_calendar(seconds)
        self.remains_s += max(0.0, -seconds)

    def fill_up(self, seconds: float) -> None:
        """The servers have no room for more, for a while. Not every engine has this fault, nor the next two."""

    def refuse_writes(self, seconds: float) -> None:
        """The servers answer, and take no writes."""

    def change_password(self, seconds: float) -> None:
        """Somebody else's password is the right one, until it is set back; see `refuses_log_ins`."""

    def refuses_log_ins(self, seconds: float) -> None:
        self._refused_until = max(self._refused_until, self.world.timeline.now + seconds)

    def has_refused_log_ins(self, since: float) -> bool:
        """Whether a client may have been told that its settings are wrong, for what it began at this true time."""
        return since <= self._refused_until + REFUSED_FOR_S

    def told(self, what: str, seconds: float) -> None:
        self.world.fault(f"server {what}")
        self.world.trace("servers", "{} for {:.3f} s", what, seconds)

    def until(self, seconds: float, end: Callable[[], None]) -> None:
        """Have a fault ended in so many seconds."""
        self.world.timeline.at(self.world.timeline.now + seconds, end)

    def special_fault(self, seconds: float) -> None:
        """One that only this engine has."""

    def end_faults(self) -> None:
        """The time of faults is over: whatever lasts ends."""
        for listener in self.listeners:
            self.end_hang(listener)
            self.start(listener, Memory.ALL)

    # What may be left

    def leftovers(self) -> list[str]:
        """Claims, or what stands for them, that are at the servers though nobody holds or waits."""
        return []

    def is_settled(self) -> bool:
        """Whether nothing is left that ends by itself."""
        return True

    def growth(self) -> dict[str, tuple[int, int]]:
        """What the servers keep for clients that hold nothing: how much, and how much would do."""
        return {}

    def after_close(self) -> dict[str, int]:
        """What the servers keep for clients when all of them have closed."""
        return {"connections": sum(listener.session_count for listener in self.listeners)}
