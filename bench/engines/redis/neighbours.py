"""The other users of a server: how long their commands take while 10,000 wait for one name, and while they hand over.

1. A process has 10,000 tasks that want one name. First nobody lets go (they wait, and keep their places); then whoever
   holds lets go after 5 ms, and asks again at once.
2. This process sends SET and GET of a key of its own, on plain sockets: in turns to that server and to another one that
   nobody else uses. So what the machine does to both at that moment cancels out; what is left is the server's doing.
3. The growth is the median over rounds of p99 here over p99 there. It is shown without waiters, too: that is noise.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import time
from multiprocessing.connection import Connection
from typing import Any

from bench.engines.redis import command, connect
from bench.model import Target
from bench.outcomes import Figure
from bench.progress import say
from bench.stats import middle, percentile
from tests.support.redis_server import free_ports, plain

CONTENDERS = ()
WAITER_COUNT = 10_000
NAME = "bench/neighbours"
HOLD_S = 0.005
PAUSE_S = 0.0005
"""Between two commands: a neighbour that uses the server, and does not flood it."""
ROUND_COUNT, ROUND_S = {True: 5, False: 15}, 1.0
READY_TIMEOUT_S = 60.0
LIMIT_RATIO = 0.2


def figures(target: Target, quick: bool) -> list[Figure]:
    folder = target.folder / "neighbours"
    quiet = plain(folder, free_ports(1)[0])
    quiet.start()
    try:
        with connect(target) as here, connect(Target(quiet.url, folder)) as there:
            return _figures(target, here, there, ROUND_COUNT[quick])
    finally:
        quiet.stop()


def _figures(target: Target, here: socket.socket, there: socket.socket, rounds: int) -> list[Figure]:
    say("neighbours: nobody waits")
    without = growth(here, there, rounds)
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_wait, args=(theirs, target), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(READY_TIMEOUT_S) or (waiting := ours.recv()) is None:
            raise RuntimeError(f"{WAITER_COUNT:,} did not come to wait within {READY_TIMEOUT_S:.0f} s")
        found = []
        for what in ("wait", "hand over"):
            say(f"neighbours: {waiting:,} {what}")
            if what == "hand over":
                ours.send(None)
            grown = growth(here, there, rounds)
            found.append(figure(waiting, what, grown, without))
        return found
    finally:
        ours.close()
        process.join(5.0)
        if process.is_alive():
            process.kill()
            process.join()


def figure(waiting: int, what: str, grown: float, without: float) -> Figure:
    return Figure(
        f"p99 of other users' commands while {waiting:,} {what}, growth",
        f"≤ {LIMIT_RATIO:.0%}: {grown:+.0%} (without them {without:+.0%})",
        grown <= LIMIT_RATIO,
    )


def growth(here: socket.socket, there: socket.socket, rounds: int) -> float:
    """By how much p99 is longer here than there: 0.2 is a fifth."""
    ratios = []
    for _ in range(rounds):
        busy, quiet = _samples(here, there, ROUND_S)
        ratios.append(percentile(busy, 0.99) / percentile(quiet, 0.99))
    return middle(ratios) - 1


def _samples(here: socket.socket, there: socket.socket, seconds: float) -> tuple[list[float], list[float]]:
    frames = (command("SET", "neighbour", "x" * 32), command("GET", "neighbour"))
    taken: tuple[list[float], list[float]] = ([], [])
    clock = time.perf_counter
    end = clock() + seconds
    while clock() < end:
        for link, samples in zip((here, there), taken, strict=True):
            for frame in frames:
                time.sleep(PAUSE_S)
                begin = clock()
                link.sendall(frame)
                link.recv(4096)
                samples.append(clock() - begin)
    return taken


def _wait(pipe: Connection, target: Target) -> None:
    asyncio.run(_waiters(pipe, target))


async def _waiters(pipe: Connection, target: Target) -> None:
    """All of them, until the parent closes the pipe."""
    import holdfast.aio

    handing, ended = asyncio.Event(), asyncio.Event()

    def told() -> None:
        try:
            pipe.recv()
            handing.set()
        except EOFError:
            ended.set()
            asyncio.get_running_loop().remove_reader(pipe.fileno())

    async with holdfast.aio.connect(target.url) as locks:

        async def want() -> None:
            while True:
                async with locks.lock(NAME, ttl=30):
                    await handing.wait()
                    await asyncio.sleep(HOLD_S)

        tasks = [asyncio.create_task(want()) for _ in range(WAITER_COUNT)]
        pipe.send(await _all_wait(locks))
        asyncio.get_running_loop().add_reader(pipe.fileno(), told)
        await ended.wait()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _all_wait(locks: Any) -> int | None:
    """Until all but the one who holds stand in the line. None: not in time."""
    end = time.monotonic() + READY_TIMEOUT_S / 2
    while time.monotonic() < end:
        await asyncio.sleep(0.5)
        (line,) = await locks.survey(NAME, exact=True)
        if len(line.waiters) >= WAITER_COUNT - 1:
            return len(line.waiters) + 1
    return None
