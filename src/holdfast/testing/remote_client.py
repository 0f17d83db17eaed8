"""A client in another process, which is given commands over a pipe and can be killed in the middle of one.

It reads one command per line, as JSON: `[name, {options}]` to acquire, `[name]` to release; and writes one reply per
line: the token, or true. It carries out one command after the other.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol

from ..aio.coordinator import Coordinator
from ..aio.lease import Lease
from .async_adapter import AsyncAdapter
from .faults import FaultInjector

PROGRAM = f"import asyncio, sys, {__name__} as client; asyncio.run(client.serve(*sys.argv[1:]))"


class RemoteClient(Protocol):
    """Another client that holds and waits."""

    async def acquire(self, name: str, **options: Any) -> int:
        """Answers with the token, once it holds."""
        ...

    async def release(self, name: str) -> bool: ...

    async def kill(self) -> None:
        """Gone, without a word."""
        ...


class LocalClient:
    """A client in this process: when it is killed, its coordinator is cut off for ever."""

    def __init__(self, locks: Coordinator, faults: FaultInjector) -> None:
        self._locks = locks
        self._faults = faults
        self._leases: dict[str, Lease] = {}
        self._killed = threading.Event()

    async def acquire(self, name: str, **options: Any) -> int:
        if "recover" in options:
            options["recover"] = self._recovery(options["recover"])
        self._leases[name] = await self._locks.lock(name, **options).acquire()
        return self._leases[name].token

    async def release(self, name: str) -> bool:
        return await self._leases.pop(name).release()

    def _recovery(self, what: str) -> Callable[[object, object], object]:
        """What `recover=` is given: a function that has nothing to do, or one that ends with this client."""
        if what == "nothing to do":
            return lambda lease, predecessor: None
        if isinstance(self._locks, AsyncAdapter):
            return lambda lease, predecessor: self._killed.wait()
        return lambda lease, predecessor: asyncio.Event().wait()

    async def kill(self) -> None:
        self._killed.set()
        self._faults.drops_pushes = True
        self._faults.cut()


class ProcessClient:
    """A client in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._turn = asyncio.Lock()

    @classmethod
    async def start(cls, url: str, namespace: str, body: str) -> ProcessClient:
        client = cls(
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", PROGRAM, url, namespace, body),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        )
        await client._reply()
        return client

    @property
    def pid(self) -> int:
        return self._process.pid

    async def acquire(self, name: str, **options: Any) -> int:
        token: int = await self._command([name, options])
        return token

    async def release(self, name: str) -> bool:
        released: bool = await self._command([name])
        return released

    async def _command(self, command: list[Any]) -> Any:
        assert self._process.stdin is not None
        async with self._turn:
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            return await self._reply()

    async def _reply(self) -> Any:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise EOFError("the remote client is gone")
        return json.loads(line)

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


async def serve(url: str, namespace: str, body: str) -> None:
    from .context import BODIES, Context
    from .engine_under_test import EngineUnderTest

    context = Context(EngineUnderTest(url), BODIES[body == "asyncio"], virtual=False)
    local = LocalClient(await context.connect(namespace=namespace), FaultInjector())
    print(json.dumps(os.getpid()), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        name, *options = json.loads(line)
        answer: Any = await local.acquire(name, **options[0]) if options else await local.release(name)
        print(json.dumps(answer), flush=True)
