"""One client process: its own clock, its own coordination and keeper, and its own bad luck.

A stopped process (a long garbage collection, a suspended machine) does nothing, but its clock goes on; what came
meanwhile is there when it wakes. A crashed one is gone for ever, and nobody is told.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from holdfast._core.coordinator_core import CoordinatorCore
from holdfast._core.flow import Flow
from holdfast._core.renewal import Keeper
from holdfast._core.renewal_schedule import RenewalSchedule

from .driver import Cancelled, SimEvent, Task
from .violation import Violation
from .wire import SimWire

if TYPE_CHECKING:
    from .world import World

NEVER_STUMBLES = 1 << 60


class Process:
    """Where tasks run."""

    def __init__(self, world: World, number: int, rate: float, base: float) -> None:
        self.world = world
        self.number = number
        self.name = name = f"c{number}"
        self.rate = rate
        self._base = base
        self.wire = SimWire(self)
        self.crashed = False
        self.stopped_until = 0.0
        """In true time; in the past if it runs."""
        self.steps_to_stumble = NEVER_STUMBLES
        self.renewing = 0
        self.renewed_at = 0.0
        """Renewals under way, and when the last one ended (by its own clock)."""
        self.scripts = 0
        """Scripts of the workload that have not ended."""
        keeper = Keeper(world.backend, RenewalSchedule(nullcontext()), SimEvent(), self._launch, self._begin)
        self.core = CoordinatorCore(world.backend, keeper, name, None)

    def clock(self) -> float:
        return self._base + self.world.timeline.now * self.rate

    def true_time(self, local: float) -> float:
        return (local - self._base) / self.rate

    @property
    def awake_since(self) -> float:
        """By its own clock: until when it was stopped last."""
        return self._base + self.stopped_until * self.rate

    def after(self, seconds: float, action: Callable[..., None], *args: Any) -> None:
        """Have something happen in this process, by its clock and if it runs then."""
        timeline = self.world.timeline
        timeline.at(timeline.now + seconds / self.rate, self._gate, action, args)

    def receive(self, when: float, action: Callable[..., None], *args: Any) -> None:
        """The same for what comes from outside, in true time."""
        self.world.timeline.at(when, self._gate, action, args)

    def _gate(self, action: Callable[..., None], args: tuple[Any, ...]) -> None:
        if self.crashed:
            return
        if self.stopped_until > self.world.timeline.now:
            self.world.timeline.at(self.stopped_until, self._gate, action, args)
        else:
            action(*args)

    def stop(self, seconds: float) -> None:
        """Nothing of it runs for a while."""
        if not self.crashed:
            self.world.fault("client stops")
            self.world.trace(self.name, "stops for {:.3f} s", seconds)
            self.stopped_until = max(self.stopped_until, self.world.timeline.now + seconds)

    def stumbles(self) -> bool:
        """Whether it stops right here."""
        self.steps_to_stumble -= 1
        if self.steps_to_stumble > 0:
            return False
        weather = self.world.weather
        if self.world.timeline.now >= weather.clears_at:
            self.steps_to_stumble = NEVER_STUMBLES
            return False
        self.steps_to_stumble = weather.steps_between_stumbles(self.world.chance)
        self.stop(weather.stop_length(self.world.chance))
        return True

    def crash(self) -> None:
        if not self.crashed:
            self.world.fault("client crashes")
            self.world.trace(self.name, "crashes")
            self.crashed = True
            self.scripts = 0

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
        """A task has ended; scripts catch what they expect, so an error is news."""
        if task.label.startswith("script"):
            self.scripts -= 1
        if error is not None and not isinstance(error, Cancelled):
            raise Violation("no flow breaks", f"{self.name} {task.label} ended with {error!r}") from error
