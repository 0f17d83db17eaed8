"""Flows on one store, one request of somebody at a time, in an order that a seed decides; with deaths, pauses and lost
replies."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, cast

from holdfast._core.flow import NOW, Call, Flow, Random, Shield, Sleep, Spawn
from holdfast.backends.execute import Moment
from holdfast.backends.memory.store import MemoryStore
from holdfast.errors import HoldfastError, OutcomeUnknown
from holdfast.testing import memory_engine


class Somebody:
    """A flow that is under way."""

    def __init__(self, name: str, flow: Flow[Any]) -> None:
        self.name = name
        self.flow: Iterator[Any] = flow
        self.op: Any = next(self.flow)
        self.ended = ""
        self.paused_until = 0


class Schedule:
    """A store, and those who use it. `tick` is how many microseconds a step takes."""

    def __init__(self, seed: int, tick: int = 1) -> None:
        self.chance = random.Random(seed)
        self.store = MemoryStore()
        self.backend = memory_engine().backend
        self.tick = tick
        self.now = 1_000_000
        self.people: list[Somebody] = []

    def start(self, name: str, flow: Flow[Any]) -> None:
        self.people.append(Somebody(name, flow))

    def ended(self, who: Somebody) -> None:
        """Somebody has ended, as `who.ended` says."""

    def step(self, who: Somebody, lose: bool = False) -> None:
        """Carry out what somebody has asked for; `lose` the reply, if it is a request."""
        self.now += self.tick
        try:
            match who.op:
                case Call(request=request):
                    answer: object = self.store.carry_out(request, Moment(self.now, self.now))[0]
                    if lose:
                        who.op = cast(Any, who.flow).throw(OutcomeUnknown("the reply was lost"))
                        return
                case Spawn(flow=flow) | Shield(flow=flow):
                    self.start(f"{who.name}, in the background", flow)
                    answer = True
                case Sleep():
                    answer = None
                case Random():
                    answer = self.chance.random()
                case other:
                    assert other is NOW
                    answer = self.now / 1e6
            who.op = cast(Any, who.flow).send(answer)
        except StopIteration:
            who.ended = "done"
        except HoldfastError as error:
            who.ended = type(error).__name__
        if who.ended:
            self.people.remove(who)
            self.ended(who)

    def storm(self, steps: int, dies: float, lose: float, pauses: float = 0.0, longest_pause: int = 0) -> None:
        """Until everybody has ended, or died, or the steps are used up. `between` is called before each."""
        for _ in range(steps):
            if not self.people:
                return
            awake = [each for each in self.people if each.paused_until <= self.now]
            if not awake:
                self.now += self.tick
                continue
            who = self.chance.choice(awake)
            fate = self.chance.random()
            if fate < dies:
                self.people.remove(who)
                continue
            if fate < dies + pauses:
                who.paused_until = self.now + self.tick * self.chance.randrange(longest_pause)
                continue
            self.step(who, lose=fate < dies + pauses + lose)
            self.between()

    def between(self) -> None:
        """After each step of a storm: somebody may come by."""

    def calm(self) -> None:
        """Everybody goes on to the end, one after the other."""
        while self.people:
            self.step(self.people[0])
