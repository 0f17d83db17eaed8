"""The context that a promise runs in: coordinators, other clients, faults; the same for threads and for tasks.

A promise is an asyncio program against the names of `holdfast.aio`. With the body "asyncio" it gets the real thing;
with the body "sync" it gets the blocking API through `async_adapter`, each task on a thread of its own. It watches the
engine instead of sleeping: `eventually`, `view`, `queued`.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import os
from collections.abc import Callable, Coroutine
from typing import Any, Literal, TypeVar, cast

from ..aio.coordinator import Coordinator
from ..errors import HoldfastError
from ..model import LockView
from ..observe.event import Event
from ..sync.coordinator import Coordinator as BlockingCoordinator
from .async_adapter import AsyncAdapter, Threads, adapt
from .engine_under_test import EngineUnderTest
from .faults import FaultInjector, FaultyEngine
from .proxy import Network
from .remote_client import LocalClient, ProcessClient, RemoteClient

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)
Body = Literal["sync", "asyncio"]
BODIES: tuple[Body, ...] = ("sync", "asyncio")

HANG_S = 40.0
"""How long to look for something that must come, before it counts as never coming: longer than the longest ttl."""

SLACK_S = 3.0
"""What a machine that is not busy may take longer than promised, where a promise is about time."""

_numbers = itertools.count(1)


class Context:
    """One run of one promise."""

    def __init__(self, under_test: EngineUnderTest, body: Body, virtual: bool) -> None:
        self.body = body
        self.virtual = virtual
        self.under_test = under_test
        self.namespace = f"t{os.getpid()}-{next(_numbers)}"
        self._threads = Threads()
        self._open: list[Coordinator] = []
        self._clients: list[RemoteClient] = []
        self._injectors: list[FaultInjector] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._networks: list[Network] = []
        self._observer: Coordinator | None = None
        self._crowd = min(5.0, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))
        """How many want each core: read once, so that a promise runs at one pace."""

    @property
    def short(self) -> float:
        """A ttl to be waited for: exact where time jumps, else long enough for a busy machine to notice."""
        return 10.0 if self.virtual else max(0.4, 2 * self._least_ttl) * self._crowd

    def seconds(self, quiet: float) -> float:
        """So many seconds of a quiet machine: more on a busy one, where the same work takes longer."""
        return quiet if self.virtual else quiet * self._crowd

    @property
    def _least_ttl(self) -> float:
        assert self._open, "connect first"
        return self._open[0]._core.backend.least_ttl

    async def connect(
        self,
        *,
        namespace: str | None = None,
        ttl: float = 30.0,
        timeout: float | None = None,
        on_event: Callable[[Event], None] | None = None,
        faults: FaultInjector | None = None,
        network: Network | None = None,
        request_timeout: float = 5.0,
        body: Body | None = None,
    ) -> Coordinator:
        """A coordinator, as one process would have it; closed at the end."""
        url = self.under_test.url if network is None else network.url
        engine = self.under_test.open(url, namespace or self.namespace, request_timeout)
        if faults is not None:
            engine = FaultyEngine(engine, faults)
            self._injectors.append(faults)
        if (body or self.body) == "asyncio":
            locks = Coordinator(engine, await engine.async_wire(), ttl, timeout, on_event)
        else:
            locks = cast(Coordinator, adapt(BlockingCoordinator(engine, ttl, timeout, on_event), self._threads))
        self._open.append(locks)
        return locks

    def network(self) -> Network:
        """A way to the engine that can be made bad; see `connect`."""
        network = Network.start(self.under_test.url)
        self._networks.append(network)
        return network

    def unwrapped(self, thing: Any) -> Any:
        """The object itself: of the blocking API where the body is "sync"."""
        return thing._target if isinstance(thing, AsyncAdapter) else thing

    async def remote_client(self) -> RemoteClient:
        """Somebody in another process, who can be killed; where there can be none, somebody who can fall silent."""
        if self.under_test.many_processes:
            client: RemoteClient = await ProcessClient.start(self.under_test.url, self.namespace, self.body)
        else:
            faults = FaultInjector()
            locks = await self.connect(faults=faults)
            self._open.remove(locks)  # it will have died
            client = LocalClient(locks, faults)
        self._clients.append(client)
        return client

    def start(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Have somebody else do something meanwhile: another task, or another thread."""
        task = asyncio.ensure_future(coroutine)
        self._tasks.append(task)
        return task

    async def raises(self, kind: type[E], coroutine: Coroutine[Any, Any, object]) -> E:
        """Have somebody else do something that must fail, and see how."""
        try:
            done = await asyncio.ensure_future(coroutine)
        except kind as error:
            return error
        raise AssertionError(f"{kind.__name__} was not raised; the answer was {done!r}")

    async def ends(self, work: Coroutine[Any, Any, T] | asyncio.Task[T], within: float, what: str) -> asyncio.Task[T]:
        """Have somebody else do something, and see that it ends in time; how it ended is left to the caller."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(lambda task: task.cancelled() or task.exception())  # seen, whoever looks at it
        done, _ = await asyncio.wait({task}, timeout=within + self.seconds(SLACK_S))
        if not done:
            self._tasks.append(task)
            raise AssertionError(f"{what} should end within {within:g} s, and has not after {SLACK_S:g} s more")
        return task

    async def eventually(self, look: Callable[[], Any], what: str = "") -> Any:
        """Look until the answer (awaited, if it has to be) is true, and return it."""
        loop = asyncio.get_running_loop()
        end = loop.time() + HANG_S
        while True:
            found = look()
            if inspect.isawaitable(found):
                found = await found
            if found:
                return found
            assert loop.time() < end, f"waited in vain{' for ' * bool(what)}{what or look}"
            await asyncio.sleep(0.01 if self.virtual else 0.002)

    def soon(self, seconds: float = 5.0) -> asyncio.Timeout:
        """What is inside takes no longer than so many seconds; where time does not jump, it may take much longer."""
        return asyncio.timeout(seconds if self.virtual else HANG_S)

    async def survey(self, prefix: str = "") -> list[LockView]:
        """What the engine says, to somebody who has nothing to do with it."""
        if self._observer is None:
            self._observer = await self.connect()
        return await self._observer.survey(prefix)

    async def view(self, name: str) -> LockView:
        """One name as the engine sees it; empty if nobody is there."""
        for view in await self.survey(name):
            if view.name == name:
                return view
        return LockView(name, 0, (), ())

    async def queued(self, name: str, count: int) -> LockView:
        """Wait until so many wait for a name."""

        async def look() -> LockView | None:
            view = await self.view(name)
            return view if len(view.waiters) == count else None

        found: LockView = await self.eventually(look, f"{count} waiters at {name!r}")
        return found

    async def free(self, *names: str) -> None:
        """Wait until nobody holds and nobody waits for a name (or for any)."""

        async def look() -> bool:
            views = await self.survey()
            return not [view for view in views if not names or view.name in names]

        await self.eventually(look, f"nobody at {', '.join(names) or 'any name'}")

    async def end(self, failed: bool, leaves: bool) -> None:
        """Stop the clients, join the tasks, fail if a claim is left."""
        for client in self._clients:
            await client.kill()
        for network in self._networks:  # what hangs there must not hang any longer
            network.close() if failed else network.flow()
        for faults in self._injectors if failed else ():
            faults.heal()
        try:
            if not failed:
                for task in self._tasks:
                    await task
                if not leaves:
                    await self.free()
            for locks in self._open:
                try:
                    await locks.close()
                except HoldfastError:
                    if not failed:
                        raise
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            for network in self._networks:
                network.close()
