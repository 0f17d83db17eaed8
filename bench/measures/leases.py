"""Many leases kept alive by one client: what renewal costs.

Each contender has a process of its own and an engine of its own, so that CPU, memory, threads and commands
are its alone. The window is a whole number of renewal periods (thirds of the ttl), so that it makes no
difference where in a period it begins. Threads are counted from outside, by the parent.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import shutil
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench import registry
from bench.model import Contender, Engine, Target
from bench.outcomes import Absent, LeasesResult
from bench.progress import say

SAMPLE_INTERVAL_S = 0.1
SETTLE_TTL_RATIO = 0.1
"""A tenth of a ttl passes before the window begins, so that no wave of renewals falls on its edge."""
STEP_TIMEOUT_S = 300.0
"""For one answer of a child: opening, taking all leases (1,000 a second on slow engines), or letting go of them."""


@dataclass(slots=True)
class Child:
    """One contender's process, as the parent sees it."""

    contender: Contender
    target: Target
    process: Any
    pipe: Connection
    before: tuple[int, int] = (0, 0)
    after: int = 0
    taken_in: float = 0.0
    counted: bool = False
    commands: int = 0
    threads: list[int] = field(default_factory=list)

    def answer(self) -> Any:
        try:
            if not self.pipe.poll(STEP_TIMEOUT_S):
                raise RuntimeError(f"no answer within {STEP_TIMEOUT_S:.0f} s")
            found = self.pipe.recv()
        except EOFError:
            raise RuntimeError("its process died") from None
        if isinstance(found, str):
            raise RuntimeError(found)
        return found

    def opened(self, count: int, ttl: float) -> None:
        self.before = self.answer()
        self.pipe.send((count, ttl))

    def taken(self) -> None:
        self.taken_in, self.after = self.answer()


def measure(
    engine: Engine,
    contenders: Sequence[Contender],
    folder: Path,
    count: int,
    ttl: float,
    window: float,
) -> tuple[list[LeasesResult], list[Absent]]:
    absent: list[Absent] = []
    with ExitStack() as stack:
        children = [_start(engine, each, folder, stack) for each in contenders]
        say(f"leases: {', '.join(each.name for each in contenders)} take {count} each")
        _all_take(children, count, ttl, absent)
        time.sleep(ttl * SETTLE_TTL_RATIO)
        _watch(engine, children, window)
        return [_finish(child, count, ttl, window) for child in children], absent


def _start(engine: Engine, contender: Contender, folder: Path, stack: ExitStack) -> Child:
    home = folder / f"leases-{contender.name.replace(' ', '-')}"
    shutil.rmtree(home, ignore_errors=True)  # of an earlier count
    home.mkdir()
    target = stack.enter_context(engine.start(home))
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_keep, args=(theirs, engine.name, contender.name, target), daemon=True)
    process.start()
    theirs.close()
    stack.callback(_end, process, ours)
    return Child(contender, target, process, ours)


def _all_take(children: list[Child], count: int, ttl: float, absent: list[Absent]) -> None:
    """At the same time, in their own processes. One that fails is put into `absent` and out of `children`."""
    steps: tuple[Callable[[Child], None], ...] = (lambda child: child.opened(count, ttl), Child.taken)
    for step in steps:
        for child in list(children):
            try:
                step(child)
            except RuntimeError as error:
                absent.append(Absent(child.contender.name, "leases", str(error)))
                children.remove(child)


def _end(process: Any, pipe: Connection) -> None:
    pipe.close()
    process.join(5.0)
    if process.is_alive():
        process.kill()
        process.join()


def _watch(engine: Engine, children: Sequence[Child], window: float) -> None:
    """Let the window pass, counting threads; CPU and commands are differences over it."""
    for child in children:
        child.counted = engine.commands is not None and child.contender.counted
        child.commands = -_commands(engine, child)
        child.pipe.send("begin")
    end = time.monotonic() + window
    said = 0.0
    while (now := time.monotonic()) < end:
        for child in children:
            child.threads.append(_threads(child.process.pid))
        if now - said >= 5.0:
            said = now
            say(f"leases: kept alive, {end - now:.0f} s to go")
        time.sleep(min(SAMPLE_INTERVAL_S, max(0.0, end - now)))
    for child in children:
        child.commands += _commands(engine, child)  # first: a child that ends may take its counter with it
        child.pipe.send("end")


def _commands(engine: Engine, child: Child) -> int:
    return engine.commands(child.target) if engine.commands and child.counted else 0


def _finish(child: Child, count: int, ttl: float, window: float) -> LeasesResult:
    seconds, cpu, lost = child.answer()
    threads_before, memory_before = child.before
    return LeasesResult(
        contender=child.contender.name,
        role=child.contender.role,
        leases=count,
        ttl=ttl,
        window=window,
        cpu=cpu / seconds,
        threads_before=threads_before,
        threads_typical=int(statistics.median_low(child.threads)),
        threads_peak=max(child.threads),
        bytes_per_lease=(child.after - memory_before) / count,
        commands=child.commands / window if child.counted else None,
        lost=lost,
        taken_in=child.taken_in,
    )


def _threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _keep(pipe: Connection, engine: str, name: str, target: Target) -> None:
    """The child: opens, takes, keeps for the window, reports, lets go."""
    try:
        opener = registry.contender(engine, name).lease_set
        assert opener is not None
        threads = threading.active_count()
        with opener(target) as lease_set:
            pipe.send((threads, resident_bytes()))
            count, ttl = pipe.recv()
            begin = time.monotonic()
            lease_set.take(count, ttl)
            pipe.send((time.monotonic() - begin, resident_bytes()))
            pipe.recv()
            begin, cpu = time.monotonic(), time.process_time()
            pipe.recv()
            spent = time.monotonic() - begin, time.process_time() - cpu
            pipe.send((*spent, lease_set.lost()))
    except EOFError:
        pass  # the parent has gone on without us
    except Exception as error:  # noqa: BLE001 - told to the parent, which reports it
        pipe.send(f"{type(error).__name__}: {error}")
