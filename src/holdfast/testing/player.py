"""Somebody in another process, who does what it is told over a pipe, and can be killed in the middle of it.

It reads one order per line, as JSON: `[name, {options}]` to acquire, `[name]` to release; and writes one answer per
line: the token, or true. It obeys one order after the other.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any, Protocol

from ..aio.coordinator import Coordinator
from ..aio.lease import Lease
from .trouble import Trouble

PROGRAM = f"import asyncio, sys, {__name__} as player; asyncio.run(player.obey(*sys.argv[1:]))"


class Player(Protocol):
    """Somebody else who holds and waits."""

    async def acquire(self, name: str, **options: Any) -> int:
        """Answers with the token, once it holds."""
        ...

    async def release(self, name: str) -> bool: ...

    async def kill(self) -> None:
        """Gone, without a word."""
        ...


class Puppet:
    """A player in this process: when it is killed, its coordinator is cut off for ever."""

    def __init__(self, locks: Coordinator, trouble: Trouble) -> None:
        self._locks = locks
        self._trouble = trouble
        self._leases: dict[str, Lease] = {}

    async def acquire(self, name: str, **options: Any) -> int:
        self._leases[name] = await self._locks.lock(name, **options).acquire()
        return self._leases[name].token

    async def release(self, name: str) -> bool:
        return await self._leases.pop(name).release()

    async def kill(self) -> None:
        self._trouble.deaf = True
        self._trouble.cut()


class Stranger:
    """A player in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._turn = asyncio.Lock()

    @classmethod
    async def start(cls, url: str, namespace: str, body: str) -> Stranger:
        stranger = cls(
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", PROGRAM, url, namespace, body),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        )
        await stranger._answer()
        return stranger

    @property
    def pid(self) -> int:
        return self._process.pid

    async def acquire(self, name: str, **options: Any) -> int:
        token: int = await self._order([name, options])
        return token

    async def release(self, name: str) -> bool:
        released: bool = await self._order([name])
        return released

    async def _order(self, order: list[Any]) -> Any:
        assert self._process.stdin is not None
        async with self._turn:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            return await self._answer()

    async def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise EOFError("the player is gone")
        return json.loads(line)

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


async def obey(url: str, namespace: str, body: str) -> None:
    from .stage import BODIES, Stage
    from .venue import Venue

    stage = Stage(Venue(url), BODIES[body == "asyncio"], virtual=False)
    puppet = Puppet(await stage.connect(namespace=namespace), Trouble())
    print(json.dumps(os.getpid()), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        name, *options = json.loads(line)
        answer: Any = await puppet.acquire(name, **options[0]) if options else await puppet.release(name)
        print(json.dumps(answer), flush=True)
