"""What nobody waits for, done by one flow beside the others: a holder that was just woken is let in before it.

1. Started with the first task; it ends when there was nothing to do for a while, or with the client, which waits for
   what is still to be told.
2. What has gathered meanwhile leaves in one write; whatever does not matter any more by then is left out.
3. Where a connection was closed, a waiter's stream has ended: the next one is dialled ahead, and closed again when this
   flow ends.
4. Where no thread can be started, nothing is told: all that is told here may be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..._core.flow import NEW_EVENT, NOW, Connection, Flow, Spawn, WaitEvent, WakeEvent
from .rpc import Post, Rpc

BATCH_COUNT = 100
IDLE_S = 5.0
PATIENCE_S = 1.0
NEVER = float("inf")


class Worker:
    """Posts to be told, and connections to be closed."""

    def __init__(
        self,
        tell: Callable[[Sequence[Rpc], float], Flow[object]],
        dial_ahead: Callable[[float], Flow[None]],
        close_unused: Callable[[], None],
    ) -> None:
        self._tell, self._dial_ahead, self._close_unused = tell, dial_ahead, close_unused
        self._tasks: list[Post | Connection] = []
        self._event: WakeEvent | None = None
        """Wakes the flow, while it runs."""
        self._starting = self._ending = False
        self._ended: WakeEvent | None = None

    def put(self, task: Post | Connection) -> Flow[None]:
        self._tasks.append(task)
        if self._event is not None:
            self._event.set()
        elif not self._starting and not self._ending:
            self._starting = True
            try:
                event: WakeEvent = yield NEW_EVENT
                self._event = event
                started: bool | None = yield Spawn(self._run(event))
                if started is False:
                    self._over()
            except BaseException:  # interrupted: perhaps nobody runs, so the next one starts another
                self._event = None
                raise
            finally:
                self._starting = False

    def _run(self, event: WakeEvent) -> Flow[None]:
        idle_end = NEVER
        try:
            while True:
                now: float = yield NOW
                if not self._tasks:
                    if self._ending or now >= idle_end or self._event is not event:
                        return
                    idle_end = min(idle_end, now + IDLE_S)
                    yield WaitEvent(event, idle_end - now)
                    continue
                idle_end = NEVER
                batch, self._tasks = self._tasks[:BATCH_COUNT], self._tasks[BATCH_COUNT:]
                rpcs = [rpc for each in batch if isinstance(each, Post) and (rpc := each.make()) is not None]
                if rpcs:
                    try:
                        yield from self._tell(rpcs, now + PATIENCE_S)
                    except Exception:  # noqa: BLE001  it may be lost; the others are told
                        pass
                if _close(batch):
                    try:
                        yield from self._dial_ahead(now + PATIENCE_S)
                    except OSError:
                        pass  # who needs it will see
        finally:
            if self._event is event:
                self._close_unused()
                self._over()

    def _over(self) -> None:
        self._event = None
        if not self._ending:
            return
        self.drop()
        if self._ended is not None:
            self._ended.set()

    def finish(self, deadline: float) -> Flow[None]:
        """Nothing more comes; what is there is told first, if it does not take too long."""
        self._ending = True
        if self._event is not None:
            self._ended = yield NEW_EVENT
            if self._event is not None:
                self._event.set()
                now: float = yield NOW
                yield WaitEvent(self._ended, max(0.0, deadline - now))
        self.drop()

    def drop(self) -> None:
        """Tell nothing of what is left."""
        tasks, self._tasks = self._tasks, []
        _close(tasks)

    def abandon(self) -> None:
        """In a forked child."""
        for each in self._tasks:
            if not isinstance(each, Post):
                each.abandon()


def _close(tasks: Sequence[Post | Connection]) -> int:
    """How many connections there were."""
    connections = [each for each in tasks if not isinstance(each, Post)]
    for each in connections:
        each.close()
    return len(connections)
