"""Names and time: what is left of a million names that were used once each, and of one that was used a million times.

1. One caller in a process of its own, so that its memory is its alone. It ends when all is done or when its time is
   over, and says how much it has done.
2. What the engine keeps is asked of the engine three times: before, right after, and after the retention has passed and
   the engine has cleared up (`Storage.clean`, which brings that about). Figures are differences to the first.
3. A contender that fails is noted, and the others go on.
"""

from __future__ import annotations

import itertools
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

from bench import registry
from bench.measures import pair
from bench.measures.leases import resident_bytes
from bench.model import Contender, Engine, Footprint, Measure, Target
from bench.outcomes import Absent, Stored, UseResult
from bench.progress import say

WARM_UP_COUNT = 50
"""Pairs before the client's memory is looked at for the first time."""
ANSWER_SLACK_S = 30.0
"""Beyond the time that a caller may take: to start, or to end a pair that hangs."""
CLOCK_EVERY_COUNT = 64


@dataclass(frozen=True, slots=True)
class UsePlan:
    """How often, and for how long at most; the peers and the floor have a part of that time."""

    counts: tuple[int, ...]
    seconds: float
    clean_seconds: float
    others_part: float = 1.0

    def seconds_of(self, contender: Contender) -> float:
        return self.seconds if contender.role == "holdfast" else self.seconds * self.others_part


def measure(
    engine: Engine, contenders: Sequence[Contender], target: Target, plan: UsePlan, label: Measure
) -> tuple[list[UseResult], list[Absent]]:
    """`label` is "names" (each name once) or "hot" (one name)."""
    found: list[UseResult] = []
    absent: list[Absent] = []
    for each in contenders:
        try:
            with _caller(engine, each, target, label) as ask:
                for count in plan.counts:
                    say(f"{label}: {each.name}, {count:,}")
                    found.append(_use(engine, each, target, ask, count, plan))
                    if found[-1].done < count:
                        break  # more of them would take as long, and show the same
        except (EOFError, RuntimeError) as error:
            absent.append(Absent(each.name, label, str(error) or "its process died"))
    return found, absent


Ask = Callable[[int, float], tuple[int, float, int]]


def _use(engine: Engine, contender: Contender, target: Target, ask: Ask, count: int, plan: UsePlan) -> UseResult:
    storage = registry.storage(engine.name)
    if storage is None:
        done, seconds, grown = ask(count, plan.seconds_of(contender))
        stored = None
    else:
        storage.clean(target, plan.clean_seconds)
        before = storage.look(target)
        done, seconds, grown = ask(count, plan.seconds_of(contender))
        after = storage.look(target)
        storage.clean(target, plan.clean_seconds)
        stored = Stored(_more(after, before), _more(storage.look(target), before))
    return UseResult(contender.name, contender.role, count, done, done / seconds, grown, stored)


def _more(now: Footprint, before: Footprint) -> Footprint:
    return Footprint(now.entries - before.entries, now.size - before.size, now.versions - before.versions)


@contextmanager
def _caller(engine: Engine, contender: Contender, target: Target, label: Measure) -> Iterator[Ask]:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_call, args=(theirs, engine.name, contender.name, target, label), daemon=True)
    process.start()
    theirs.close()

    def answer(seconds: float) -> tuple[int, float, int]:
        if not ours.poll(seconds + ANSWER_SLACK_S):
            raise RuntimeError(f"no answer within {seconds + ANSWER_SLACK_S:.0f} s")
        found: tuple[int, float, int] | str = ours.recv()
        if isinstance(found, str):
            raise RuntimeError(found)
        return found

    def ask(count: int, seconds: float) -> tuple[int, float, int]:
        ours.send((count, seconds))
        return answer(seconds)

    try:
        answer(0.0)  # it is warm: what comes from now on is counted
        yield ask
    finally:
        ours.close()
        process.join(5.0)
        if process.is_alive():
            process.kill()
            process.join()


def _call(pipe: Connection, engine: str, name: str, target: Target, label: Measure) -> None:
    """The life of the caller."""
    try:
        with _body(registry.contender(engine, name), target, label) as body:
            pipe.send(_timed(body, WARM_UP_COUNT, ANSWER_SLACK_S / 2))
            while True:
                count, seconds = pipe.recv()
                pipe.send(_timed(body, count, seconds))
    except EOFError:
        pass  # the parent has all it wants
    except Exception as error:  # noqa: BLE001 - told to the parent, which reports it
        pipe.send(f"{type(error).__name__}: {error}")


@contextmanager
def _body(contender: Contender, target: Target, label: Measure) -> Iterator[Callable[[], object]]:
    if label == "hot":
        with pair.open_pair(contender, target) as body:
            yield body
        return
    assert contender.named_pair is not None
    with contender.named_pair(target) as named:
        numbers = itertools.count()
        yield lambda: named(f"orders-{next(numbers)}")


def _timed(body: Callable[[], object], count: int, seconds: float) -> tuple[int, float, int]:
    """How many were done in how many seconds, and by how many bytes memory grew."""
    memory, begin, done = resident_bytes(), time.monotonic(), 0
    while done < count and time.monotonic() - begin < seconds:
        for _ in range(min(CLOCK_EVERY_COUNT, count - done)):
            body()
            done += 1
    return done, time.monotonic() - begin, resident_bytes() - memory
