"""Those who handle the messages of actors in one process, for tasks: they look for actors that have some.

1. The index of actors with messages is read page by page in a circle, and an `Activation` is started for each, up to
   `concurrency` at a time. Each page is shuffled, so that the workers of several processes do not meet.
2. If there is nothing to do it pauses, longer and longer; a message told by the same coordinator wakes it.
3. An actor that another worker has, or whose activation has failed, is left alone for a while.
4. An actor that has a place and no messages gives way to those that have some.
5. To stop: no message is begun any more, and those under way are handled to their end.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from .._core.actor_exchange import ActiveWorker
from .._core.backoff import ceiling
from ..clock import now
from ..errors import BackendUnavailable, LeaseLost, Misconfigured
from ..observe.log_exception import log_exception
from ..recipes import actor_worker as flows
from ..recipes.actor_options import ActorPlan
from .activation import Activation, Handler
from .base_partitions import Background, finish, wait_first

if TYPE_CHECKING:
    from .coordinator import Coordinator

IDLE_S, IDLE_CAP_S = 0.01, 0.25
"""The first and the longest pause between two looks at the index."""
AWAY_S, AWAY_CAP_S, FAILED_CAP_S = 0.02, 0.5, 10.0
"""The first and the longest time for which an actor is left alone that another worker has; longer after an error."""


class ActorLoop:
    """The workers of one `ActorSystem`, whose name is `whose`."""

    def __init__(self, coordinator: Coordinator, plan: ActorPlan, handler: Handler, whose: str) -> None:
        self._coordinator = coordinator
        self._plan = plan
        self._handler = handler
        self._whose = whose
        self._wake = asyncio.Event()
        self._over = asyncio.Event()
        """The workers are to stop."""
        self._pid = 0
        """The process in which its workers run."""
        self._active: dict[str, Background] = {}
        self._ended: deque[tuple[str, float]] = deque()
        """Actors whose activation has ended, and for how long they are left alone at most; 0 if all went well."""
        self._away: dict[str, tuple[int, float]] = {}
        """Actors to be left alone: how often in a row, and until when."""
        self._crowded = False
        """Whether others wait for the places of those that are at work."""

    def begin(self) -> None:
        """Before `serve`: raises `Misconfigured` if it runs already."""
        with self._coordinator._mutex:
            if self._pid == os.getpid():
                raise Misconfigured(
                    f"{self._whose} runs already; make another one with locks.actors(), or more concurrency="
                )
            self._pid = os.getpid()
        self._active, self._ended, self._away = {}, deque(), {}
        self._over.clear()

    def end(self) -> None:
        """Have `serve` come to its end."""
        self._over.set()
        self._wake.set()

    async def serve(self, stop: asyncio.Event | None) -> None:
        """Until `stop` is set, or it is to end."""
        core = self._coordinator._core
        wakes = core.actors.wakes.setdefault(self._plan.name, set())
        wakes.add(self._wake)
        try:
            await self._look_for_work(stop)
        except Misconfigured:
            if not core.admission.closed:
                raise
        except Exception:
            log_exception("the workers of %s have ended", self._whose)
            raise
        except BaseException:
            for each in self._active.values():
                each.abandon()
            raise
        finally:
            self._over.set()
            wakes.discard(self._wake)
            self._wake_idle()
            await finish(self._end)

    async def _end(self) -> None:
        for each in list(self._active.values()):
            await each.wait()
        self._note_ends()
        self._pid = 0

    async def _look_for_work(self, stop: asyncio.Event | None) -> None:
        core, plan, after, idle, failures = self._coordinator._core, self._plan, "", 0, 0
        while not (self._over.is_set() or (stop is not None and stop.is_set())):
            self._wake.clear()
            self._note_ends()
            page, begun = [], 0
            if len(self._active) < plan.concurrency or self._idle_workers():
                try:
                    page = await self._coordinator._run(flows.ready(core, plan, after))
                    failures = 0
                except BackendUnavailable:
                    failures += 1
                begun = self._begin_each([(each.key, each.version) for each in page if flows.is_ready(each)])
            after = page[-1].key[len(plan.ready_prefix) :] if len(page) == flows.PAGE_COUNT else ""
            idle = 0 if begun else idle + 1
            if after and len(self._active) < plan.concurrency:
                continue
            pause = ceiling(max(idle, failures), IDLE_S, 4 * IDLE_CAP_S if failures else IDLE_CAP_S)
            await wait_first(stop, self._wake, random.uniform(pause / 2, pause))

    def _begin_each(self, ready: list[tuple[str, int]]) -> int:
        """Begin with those that can be begun with; answers how many."""
        plan, begun = self._plan, 0
        random.shuffle(ready)
        self._crowded = False
        for full, version in ready:
            key = full[len(plan.ready_prefix) :]
            if key in self._active or now() < self._away.get(key, (0, 0.0))[1]:
                continue
            if len(self._active) >= plan.concurrency:
                self._crowded = True
                self._wake_idle()
                break
            self._active[key] = Background(partial(self._activate, key, version), f"holdfast-actor-{key}")
            begun += 1
        return begun

    def _idle_workers(self) -> list[ActiveWorker]:
        workers, plan = self._coordinator._core.actors.workers, self._plan
        found = [workers.get(plan.record_of(key)) for key in list(self._active)]
        return [each for each in found if each is not None and each.idle]

    def _wake_idle(self) -> None:
        for each in self._idle_workers():
            each.event.set()

    def _is_wanted(self) -> bool:
        """Whether an actor without messages is in the way of others."""
        if len(self._active) >= self._plan.concurrency:
            self._wake.set()  # it is time to look for them
        return self._crowded

    async def _activate(self, key: str, version: int) -> None:
        away = AWAY_CAP_S
        try:
            activation = Activation(
                self._coordinator, self._plan, self._handler, key, version, self._over, self._is_wanted
            )
            if await activation.run():
                away = 0.0
        except (BackendUnavailable, LeaseLost):
            pass  # somebody goes on with it
        except Exception:  # noqa: BLE001  one actor's trouble is not another's
            away = FAILED_CAP_S
            if not self._coordinator._core.admission.closed:
                log_exception("%r of %s: its messages wait", key, self._whose)
        finally:
            self._ended.append((key, away))
            self._wake.set()

    def _note_ends(self) -> None:
        while self._ended:
            key, away = self._ended.popleft()
            self._active.pop(key, None)
            count, _ = self._away.pop(key, (0, 0.0))
            if away:
                self._away[key] = (count + 1, now() + ceiling(count, AWAY_S, away))
        if len(self._away) > 10 * flows.PAGE_COUNT:
            self._away = {key: each for key, each in self._away.items() if each[1] > now()}
