"""The limiter on an engine without a clock: callers whose calendars differ. Driven by hand, at an etcd of one key."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from holdfast._core.flow import NOW, Call, Random
from holdfast.backends.etcd.keys import Keys
from holdfast.backends.etcd.rates import CounterKeys
from holdfast.backends.ordered_keys.rates import Rates

SECOND = 1_000_000


@dataclass
class OneKey:
    """As much of etcd as a limiter uses."""

    revision: int = 1
    changed: int = 0
    value: str = ""

    def answer(self, body: str) -> Any:
        asked = json.loads(body)
        header = {"header": {"revision": str(self.revision)}}
        if "compare" not in asked:
            return header  # a lease
        if int(asked["compare"][0]["mod_revision"]) == self.changed:
            for op in asked["success"]:
                self.revision += 1
                self.changed, self.value = self.revision, op["request_put"]["value"]
            return {"header": {"revision": str(self.revision)}, "succeeded": True}
        kvs = [{"mod_revision": str(self.changed), "value": self.value}]
        return header | {"responses": [{"response_range": {"kvs": kvs}}]}


@dataclass
class World:
    now: float = 1000.0
    etcd: OneKey = field(default_factory=OneKey)


class Caller:
    """One coordinator, whose calendar is ahead by so many seconds."""

    def __init__(self, world: World, ahead: float = 0.0) -> None:
        self._world = world
        self._rates = Rates(CounterKeys(Keys("holdfast"), lambda: int((world.now + ahead) * SECOND), 1.0))

    def try_acquire(self) -> bool:
        """One of one per second, at most two at once."""
        flow = self._rates.allow("mail", 1.0, 2, 1, 0.0)
        try:
            op = flow.send(None)
            while True:
                if op is NOW:
                    op = flow.send(self._world.now)
                elif isinstance(op, Random):
                    op = flow.send(0.5)
                else:
                    assert isinstance(op, Call)
                    assert isinstance(op.request, tuple)
                    op = flow.send([self._world.etcd.answer(rpc.body) for rpc in op.request])
        except StopIteration as stop:
            allowed: bool = stop.value[0]
            return allowed

    def passes(self, seconds: int) -> int:
        """How often it is let through, if it tries once a second."""
        count = 0
        for _ in range(seconds):
            count += self.try_acquire()
            self._world.now += 1.0
        return count


def test_calendars_that_agree_keep_the_rate() -> None:
    world = World()
    one, other = Caller(world), Caller(world)
    assert [one.try_acquire(), other.try_acquire(), one.try_acquire()] == [True, True, False]
    assert one.passes(10) + other.passes(10) == 19  # the first second has not passed yet


def test_a_calendar_that_is_ahead_gets_what_it_is_worth_once() -> None:
    world = World()
    right, ahead = Caller(world), Caller(world, ahead=3600.0)
    assert [right.try_acquire(), right.try_acquire(), right.try_acquire()] == [True, True, False]
    assert [ahead.try_acquire() for _ in range(4)] == [True, True, False, False]


def test_a_calendar_that_is_ahead_closes_the_door_to_nobody() -> None:
    """An hour later by one calendar: for all others time goes on from there, and does not wait for them."""
    world = World()
    right, ahead = Caller(world), Caller(world, ahead=3600.0)
    assert [ahead.try_acquire(), ahead.try_acquire()] == [True, True]
    assert right.passes(20) == 19


def test_a_calendar_that_is_set_back_closes_the_door_to_nobody() -> None:
    world = World()
    before, after = Caller(world), Caller(world, ahead=-3600.0)
    assert before.try_acquire()
    assert before.try_acquire()
    assert after.passes(20) == 19
