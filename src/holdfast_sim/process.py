"""One client process: its own clock, coordinator core and keeper, and its own faults.

A paused process (a long garbage collection, a suspended machine) does nothing, but its clock goes on; messages that
arrived meanwhile are there when it resumes. A crashed one never comes back, and nobody is told.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from holdfast._core.coordinator_core import CoordinatorCore
from holdfast._core.flow import Flow
from holdfast._core.renewal import Keeper
from holdfast._core.renewal_schedule import RenewalSchedule
from holdfast.ports import AnyBackend, Client

from .connections import Net, SimConnection
from .driver import SimEvent, Task, TaskCancelled
from .files import SimFile
from .violation import Violation
from .wire import SimWire

if TYPE_CHECKING:
    from .world import World

NEVER_STEP_COUNT = 1 << 60
"""More clock readings than a seed has."""


class Process:
    """Where tasks run."""

    def __init__(self, world: World, number: int, rate: float, base: float) -> None:
        self.world = world
        self.number = number
        self.name = f"c{number}"
        self.rate = rate
        self._base = base
        self.wire = SimWire(self)
        self.client: Client[Any, Any] | None = None
        """What carries its requests out, where they are simulated down to the bytes."""
        self.net: Net | None = None
        self.connections: list[SimConnection] = []
        self.files: list[SimFile] = []
        """By their number: connections that a library has opened."""
        self.crashed = False
        self.closing = False
        """It has begun to close its coordinator."""
        self.stopped_until = 0.0
        """In true time; in the past if the process runs."""
        self.steps_to_pause = NEVER_STEP_COUNT
        self.renewing = 0
        self.renewed_at = 0.0
        """Renewals in flight, and when the last one ended (by the process's clock)."""
        self.scripts = 0
        """How many scripts of the workload have not ended."""
        if world.backend is not None:
            self.coordinate(world.backend)

    def coordinate(self, backend: AnyBackend) -> None:
        """Make its coordinator."""
        keeper = Keeper(backend, RenewalSchedule(nullcontext()), SimEvent(), self._launch, self._begin)
        self.core = CoordinatorCore(backend, keeper, self.name, None)

    def clock(self) -> float:
        return self._base + self.world.timeline.now * self.rate

    def true_time(self, local: float) -> float:
        return (local - self._base) / self.rate

    @property
    def awake_since(self) -> float:
        """When its last pause ended, by its own clock."""
        return self._base + self.stopped_until * self.rate

    def after(self, seconds: float, action: Callable[..., None], *args: Any) -> None:
        """Run an action in this process after a delay by its clock; a paused process runs it when it resumes."""
        timeline = self.world.timeline
        timeline.at(timeline.now + seconds / self.rate, self._gate, action, args)

    def receive(self, when: float, action: Callable[..., None], *args: Any) -> None:
        """Run an action in this process at a true time: for messages from outside."""
        self.world.timeline.at(when, self._gate, action, args)

    def _gate(self, action: Callable[..., None], args: tuple[Any, ...]) -> None:
        if self.crashed:
            return
        if self.stopped_until > self.world.timeline.now:
            self.world.timeline.at(self.stopped_until, self._gate, action, args)
        else:
            action(*args)

    def stop(self, seconds: float) -> None:
        """Pause the whole process."""
        if not self.crashed:
            self.world.fault("client stops")
            self.world.trace(self.name, "stops for {:.3f} s", seconds)
            self.stopped_until = max(self.stopped_until, self.world.timeline.now + seconds)

    def pauses_here(self) -> bool:
        """Whether the process is paused at this reading of the clock."""
        self.steps_to_pause -= 1
        if self.steps_to_pause > 0:
            return False
        profile = self.world.profile
        if self.world.timeline.now >= profile.faults_end_at:
            self.steps_to_pause = NEVER_STEP_COUNT
            return False
        self.steps_to_pause = profile.steps_between_pauses(self.world.chance)
        self.stop(profile.stop_length(self.world.chance))
        return True

    def crash(self) -> None:
        if not self.crashed:
            self.world.fault("client crashes")
            self.world.trace(self.name, "crashes")
            self.crashed = True
            self.scripts = 0
            for connection in self.connections:
                connection.crashed()

    def spawn(self, flow: Flow[Any], label: str) -> Task:
        task = Task(self, flow, label)
        task.start()
        return task

    def _launch(self, keeper: Keeper) -> None:
        if not keeper.launched:
            keeper.launched = True
            self.spawn(keeper.watch(), "keeper")

    def _begin(self, renewal: Flow[None]) -> bool:
        self.spawn(renewal, "renewal")
        return True

    def ended(self, task: Task, error: BaseException | None) -> None:
        """A task has ended. Scripts catch the errors they expect, so any other error is a violation."""
        if task.label.startswith("script"):
            self.scripts -= 1
        if error is not None and not isinstance(error, TaskCancelled):
            raise Violation("no flow breaks", f"{self.name} {task.label} ended with {error!r}") from error
