"""The asyncio wire: all requests on one stream to their server. The rules are those of the blocking wire.

Nothing blocks the loop: whatever may (names, TLS, sentinels, the map of a cluster) runs beside it, on a thread.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable
from typing import Any

from ....errors import BackendUnavailable, Misconfigured, OutcomeUnknown
from ....model import LockView
from ...queue_backend import UNKNOWN, Allow, Push, Release, Renew, Survey, Take, Taken
from ..codec import NOT_YET_HEARING, NOWHERE, Codec, Order, channels_of, write
from ..durability import NotConfirmed
from ..replies import one_taken, waits
from ..resp import Error, command
from ..trouble import ELSEWHERE, cannot_read, translated
from .address import Address
from .aio_listener import AsyncListener
from .aio_servers import AsyncCluster, AsyncPrimary, AsyncServers, Line
from .batch import GRACE_S
from .reply import Reply, finish
from .stream import was_ended
from .surveying import steps
from .timing import STEP_S
from .together import Together
from .topology import AnyNode, Topology
from .wire import TRIES

_abandoned: list[Any] = []
"""What a forked child has of its parent's: neither used nor closed, for its transports are bound to a loop."""


class AsyncRedisWire:
    """Carries out requests in the caller's task."""

    def __init__(self, address: Address, namespace: str, timeout: float, flags: bool) -> None:
        self._address, self._namespace, self._timeout, self._flags = address, namespace, timeout, flags
        self._durability = address.durability
        self._begin()

    @classmethod
    async def open(cls, address: Address, namespace: str, timeout: float, flags: bool) -> AsyncRedisWire:
        return cls(address, namespace, timeout, flags)

    def _begin(self) -> None:
        alone, flags = not self._address.seeds, self._flags
        self._codec = Codec(self._namespace, socket.gethostname(), os.getpid(), indexed=alone, flags=flags)
        channels = channels_of(self._namespace)
        self._line: Line | None = None
        if alone:
            dialler = self._address.dialler
            self._listener = AsyncListener(dialler, channels, "")
            together = Together(self._codec, self._listener.channel, self._alone)
            self._line = Line(dialler, self._listener, together.write, self._make_again)
            self._servers: AsyncServers = AsyncPrimary(self._line)
            return
        topology = Topology(self._address.seeds, self._timeout)
        anywhere = AnyNode(topology)
        self._listener = AsyncListener(anywhere, channels, "*")
        topology.on_suspect = lambda node: self._listener.hang_up() if node == anywhere.at else None
        self._servers = AsyncCluster(topology)

    def call(self, request: Any, timeout: float) -> Awaitable[Any]:
        line = self._line
        if line is not None and self._durability is None and (stream := line.stream) is not None and stream.open:
            # The uncontended take and release, with nothing in the way, not even a coroutine.
            kind = request.__class__
            if kind is Take and request.queue and len(request.claims) == 1:
                if self._listener.ready:
                    if timeout == self._timeout and stream.crowded:
                        return stream.join(timeout, self._taken, request)
                    frame = self._codec.taking(request.claims[0], self._listener.channel)
                    return stream.ask(frame, timeout, self._taken, request)
                frame = self._codec.taking(request.claims[0], NOT_YET_HEARING)
                return stream.ask(frame, timeout, self._taken_unheard, request)
            if kind is Release and not request.linger:
                if timeout == self._timeout and stream.crowded:
                    return stream.join(timeout, self._released, request)
                return stream.ask(self._codec.releasing(request.claim), timeout, self._released, request)
        return self._carefully(request, timeout)

    def _alone(self, reply: Reply) -> None:
        finish(reply, self._carefully(reply.request, self._left(reply)))

    def _make_again(self, reply: Reply) -> bool:
        """The server has ended the connection: rule 3 of the blocking wire."""
        if reply.request.__class__ is Release:
            order = self._codec.release(reply.request.claim, 0.0)
            finish(reply, self._ask(order._replace(read=order.read_again), self._left(reply)))
        else:
            self._alone(reply)
        return True

    def _left(self, reply: Reply) -> float:
        deadline: float | None = getattr(reply, "deadline", None)  # None: it waits to be written
        return reply.timeout if deadline is None else max(STEP_S, deadline - _now())

    def _taken(self, reply: Reply, value: Any) -> None:
        if value.__class__ is bytes:
            reply.answer([Taken(int(value))])
        elif value.__class__ is Error:
            self._alone(reply)
        else:
            reply.answer(one_taken(value))

    def _taken_unheard(self, reply: Reply, value: Any) -> None:
        if value.__class__ is bytes or value.__class__ is Error:
            self._taken(reply, value)
        else:
            finish(reply, self._reachable(reply.request, self._left(reply), NOT_YET_HEARING, one_taken(value)))

    def _released(self, reply: Reply, value: Any) -> None:
        if value.__class__ is Error:
            self._alone(reply)
            return
        if self._listener.early:
            self._listener.forget(reply.request.claim.owner)
        reply.answer(value == 1)

    async def _carefully(self, request: Any, timeout: float) -> Any:
        kind = request.__class__
        if kind is Take:
            return await self._take(request, timeout)
        if kind is Survey:
            return await self._survey(request, timeout)
        if kind is Renew and self._line is None:
            return await self._renew_each(request, timeout)
        if kind is Release:
            self._listener.forget(request.claim.owner)
        return await self._ask(
            write(self._codec, request, NOWHERE), timeout, confirmed=kind is Renew, repeatable=kind is not Allow
        )

    async def _take(self, request: Take, timeout: float) -> list[Taken]:
        end = _now() + timeout
        if self._line is not None:
            await self._line.get(timeout)  # it may listen, then
        wake = self._listener.channel if self._listener.ready else NOT_YET_HEARING
        try:
            taken: list[Taken] = await self._ask(write(self._codec, request, wake), self._until(end), confirmed=True)
            return await self._reachable(request, self._until(end), wake, taken)
        except NotConfirmed:
            for claim in request.claims:
                await self._ask(self._codec.release(claim, 0.0), self._until(end))
            raise

    async def _reachable(self, request: Take, timeout: float, wake: str, taken: list[Taken]) -> list[Taken]:
        if wake is NOT_YET_HEARING and request.queue and any(map(waits, taken)):
            end = _now() + timeout
            wake = self._listener.channel if await self._listener.open(timeout) else NOWHERE
            taken = await self._ask(write(self._codec, request, wake), self._until(end), confirmed=True)
        return taken

    def _until(self, end: float) -> float:
        return max(STEP_S, end - _now())

    async def _ask(self, order: Order, timeout: float, *, confirmed: bool = False, repeatable: bool = True) -> Any:
        """One call. `repeatable`: a second one does no harm (rule 3)."""
        end = _now() + timeout
        frame = order.program.call(order.size) + order.words
        line = self._line or await self._servers.having(order.key, timeout)
        asking = again = False
        if not repeatable and line.stream is not None and line.stream.ended():
            line.drop()
        for attempt in range(TRIES):
            try:
                reply = await self._send(line, frame, end, confirmed, asking)
            except OutcomeUnknown as error:
                if again or not repeatable or not was_ended(error):
                    self._servers.failed(line)
                    raise
                again = True
                continue
            except NotConfirmed:
                raise
            except BackendUnavailable:
                self._servers.failed(line)
                if (other := await self._servers.instead(line, order.key, self._until(end))) is None:
                    raise
                line = other
                continue
            if reply.__class__ is not Error:
                return order.read_again(reply) if again else order.read(reply)
            if reply.code == "NOSCRIPT":
                frame = order.program.call_with_source(order.size) + order.words
            elif order.program.plain is not None and cannot_read(reply):
                self._codec.do_without_flags()
                order = order._replace(program=order.program.plain)
                frame = order.program.call_with_source(order.size) + order.words
            elif reply.code in ELSEWHERE and attempt < TRIES - 1:
                line, asking = await self._servers.elsewhere(reply, line, order.key, self._until(end))
            else:
                raise translated(reply)
        raise BackendUnavailable("Redis kept sending the request elsewhere; its topology is changing")

    async def _send(self, line: Line, frame: bytes, end: float, confirmed: bool, asking: bool = False) -> Any:
        stream = line.stream
        if stream is None or not stream.open:
            stream = await line.get(self._until(end))
        timeout = self._until(end)
        if asking:
            stream.ask(command("ASKING"), timeout)
        first = stream.ask(frame, timeout)
        if self._durability is None or not confirmed:
            return await first
        second = stream.ask(self._durability.frame(timeout), timeout)
        reply = await first
        self._durability.check(await second, reply)
        return reply

    async def _renew_each(self, request: Renew, timeout: float) -> list[str]:
        """On a cluster every name is a call of its own; those for one node leave in one write (rules of `batch`)."""
        end = _now() + timeout
        asked: list[tuple[asyncio.Task[str], bool]] = []
        for claim in request.claims:
            order = self._codec.renew([claim])
            line = await self._servers.having(order.key, self._until(end))
            asked.append((asyncio.ensure_future(self._renew_one(order, line, self._until(end))), line.ailing))
        ailing = [task for task, ails in asked if ails]
        if well := [task for task, ails in asked if not ails]:
            await asyncio.wait(well)
        if ailing:
            await asyncio.wait(ailing, timeout=GRACE_S if well else None)
        return [task.result() if task.done() else UNKNOWN for task, _ in asked]

    async def _renew_one(self, order: Order, line: Line, timeout: float) -> str:
        try:
            said: list[str] = await self._ask(order, timeout, confirmed=True)
        except (BackendUnavailable, Misconfigured):
            line.ailing = True
            return UNKNOWN
        line.ailing = False
        return said[0]

    async def _survey(self, request: Survey, timeout: float) -> list[LockView]:
        looking = steps(self._codec, request, await self._servers.every(timeout), self._line is not None)
        reply = None
        try:
            while True:
                where, what = looking.send(reply)
                if isinstance(what, Order):
                    reply = await self._ask(what, timeout)
                elif where is not None:
                    reply = await self._plainly(where, what, timeout)
        except StopIteration as stop:
            views: list[LockView] = stop.value
            return views

    async def _plainly(self, line: Line, frame: bytes, timeout: float) -> Any:
        """A plain command to one server, of a kind that may be repeated."""
        end = _now() + timeout
        try:
            try:
                reply = await self._send(line, frame, end, False)
            except OutcomeUnknown as error:
                if not was_ended(error):
                    raise
                reply = await self._send(line, frame, end, False)
        except BackendUnavailable:
            self._servers.failed(line)
            raise
        if isinstance(reply, Error):
            raise translated(reply)
        return reply

    def wait(self, owner: str, timeout: float) -> Awaitable[Push | None]:
        push = self._listener.wait(owner, timeout)
        return push if self._durability is None else _looking_again(push)

    def before_fork(self) -> None:
        pass  # the child does not touch what is under way

    def after_fork_in_parent(self) -> None:
        pass

    def after_fork_in_child(self) -> None:
        _abandoned.extend([self._servers, self._listener])
        self._begin()

    async def close(self) -> None:
        await self._listener.close()
        await self._servers.close()


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _looking_again(push: Awaitable[Push | None]) -> None:
    """A grant that was pushed is taken again: rule 3 of the blocking wire."""
    await push
