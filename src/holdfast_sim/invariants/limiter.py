"""What must hold for a limiter: in no window of time does more pass than its burst and what its rate adds.

Time is the engine's own, so its jumps count; an engine that lost its data begins anew. A caller that was told to wait
until a time does not pass before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.backends.execute import us
from holdfast.backends.queue_backend import Allow

from ..violation import Violation

if TYPE_CHECKING:
    from ..driver import Task
    from ..world import World


class LimiterInvariants:
    """All passes, of all limiters."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._passes: dict[str, list[tuple[int, int]]] = {}
        """The engine's time and the cost of each pass, by name."""
        self._booked: dict[Task, float] = {}

    def forget(self) -> None:
        self._passes.clear()

    def allowed(self, request: Allow, reply: tuple[bool, float], now: int, task: Task | None) -> None:
        """The engine has decided. `task` is the task that still waits for the reply, if any."""
        allowed, wait = reply
        if not allowed:
            return
        self._world.count("passes")
        if task is not None:
            self._booked[task] = self._world.timeline.now + 0.99 * wait
        at, interval = now + us(wait), us(request.interval)
        passes = self._passes.setdefault(request.name, [])
        passes.append((at, request.cost))
        passes.sort()
        for first, (begin, _) in enumerate(passes):
            total = 0
            for end, cost in passes[first:]:
                total += cost
                if (total - request.burst) * interval > end - begin + 2:
                    raise Violation(
                        "a limiter keeps its rate",
                        f"{request.name!r} let {total} pass within {(end - begin) / 1e6:.3f} s, with a burst of "
                        f"{request.burst} and one in {request.interval:g} s",
                    )

    def passed(self, task: Task) -> None:
        """A caller has passed."""
        early = self._booked.pop(task, 0.0) - self._world.timeline.now
        if early > 0:
            raise Violation("a limiter keeps its rate", f"{task.process.name} passed {early:.3f} s before its moment")
