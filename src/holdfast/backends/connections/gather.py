"""Flows that run at the same time, and what is made of their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ..._core.flow import NEW_EVENT, NOW, Flow, Spawn, WaitEvent, WakeEvent

T = TypeVar("T")


class _Race(Generic[T]):
    def __init__(self, event: WakeEvent, discard: Callable[[T], object] | None) -> None:
        self.event = event
        self.discard = discard
        self.results: dict[int, T] = {}
        self.failures: dict[int, Exception] = {}
        self.over = False


def _run(race: _Race[T], number: int, flow: Flow[T]) -> Flow[None]:
    try:
        result = yield from flow
    except Exception as error:  # noqa: BLE001  whoever started it decides
        race.failures[number] = error
    else:
        if race.over:  # nobody waits for it any more
            if race.discard is not None:
                race.discard(result)
            return
        race.results[number] = result
    race.event.set()


def first(flows: Sequence[Flow[T]], deadline: float, discard: Callable[[T], object], stagger_s: float = 0.0) -> Flow[T]:
    """The first result; what comes later is discarded. The last failure if all fail; `TimeoutError` at the deadline.

    With `stagger_s` each next one begins when one has failed, or when none has had a result for so long.
    """
    if len(flows) == 1:
        return (yield from flows[0])
    race: _Race[T] = _Race((yield NEW_EVENT), discard)
    started = 0
    try:
        while not race.results and len(race.failures) < len(flows):
            now: float = yield NOW
            if now >= deadline:
                raise TimeoutError("none of them answered in time")
            if started < len(flows):
                yield from _start(race, flows[started : started + 1] if stagger_s else flows, started)
                started = started + 1 if stagger_s else len(flows)
            if race.results or len(race.failures) == len(flows):
                break
            left = deadline - now
            yield WaitEvent(race.event, min(left, stagger_s) if started < len(flows) else left)
    finally:
        race.over = True
        for flow in flows[started:]:
            flow.close()
        numbers = sorted(race.results)
        for number in numbers[1:]:
            discard(race.results[number])
    if not numbers:
        raise race.failures[max(race.failures)]
    return race.results[numbers[0]]


def gather(
    flows: Sequence[Flow[T]],
    deadline: float,
    enough: Callable[[dict[int, T], dict[int, Exception]], bool] = lambda results, failures: False,
    discard: Callable[[T], object] | None = None,
) -> Flow[tuple[dict[int, T], dict[int, Exception]]]:
    """All results and failures by the flow's number, until `enough`, the last of them, or the deadline."""
    race: _Race[T] = _Race((yield NEW_EVENT), discard)
    try:
        yield from _start(race, flows)
        while len(race.results) + len(race.failures) < len(flows) and not enough(race.results, race.failures):
            now: float = yield NOW
            if now >= deadline:
                break
            yield WaitEvent(race.event, deadline - now)
    finally:
        race.over = True
    return race.results, race.failures


def _start(race: _Race[T], flows: Sequence[Flow[T]], begin: int = 0) -> Flow[None]:
    for number, flow in enumerate(flows, begin):
        started: bool | None = yield Spawn(_run(race, number, flow))
        if started is False:
            race.failures[number] = OSError("no thread could be started for it")
