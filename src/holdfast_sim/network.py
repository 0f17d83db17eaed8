"""The network: requests, replies and pushes, each with a fate of its own.

A message may be late (with a heavy tail: later than any timeout, now and then), lost, or carried twice, the second
time much later, when its sender has long gone on. Messages overtake each other. Only traffic with the resource is
never doubled: there a write happens in a transaction of its own.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

from holdfast._core.line import Place
from holdfast.backends.queue_backend import Push

from .driver import TICK

if TYPE_CHECKING:
    from .wire import Flight
    from .world import World

LONGEST = 8.0
"""No message is under way for longer, in seconds."""


class Network:
    """Decides what becomes of each message."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = world.chance.random
        self._weather = world.weather

    def _rough(self) -> bool:
        return self._world.timeline.now < self._weather.clears_at

    def _delay(self, tail: float) -> float:
        weather = self._weather
        if tail and self._random() < tail and self._rough():
            return min(LONGEST, 0.02 / (1.0 - self._random()))
        return TICK + min(20.0, -log(1.0 - self._random())) * weather.latency

    def send(self, flight: Flight) -> None:
        world, weather = self._world, self._weather
        now = world.timeline.now
        server = world.engine if world.is_verb(flight.request) else world.resources
        world.trace(flight.process.name, "sends {}", flight.request)
        if weather.loss and self._random() < weather.loss and self._rough():
            world.fault("request lost")
            world.trace("network", "loses it")
            world.watch.disturbed(flight.request)
            return
        delay = self._delay(weather.tail if server is world.engine else weather.resource_tail)
        world.timeline.at(now + delay, server.receive, flight, False)
        if server is world.engine and weather.duplication and self._random() < weather.duplication and self._rough():
            world.fault("request doubled")
            flight.doubled = True
            world.watch.disturbed(flight.request)
            later = delay + self._delay(weather.tail) + self._random() ** 3 * weather.double_within
            world.timeline.at(now + later, server.receive, flight, True)

    def reply(self, flight: Flight, reply: Any, error: BaseException | None = None) -> None:
        world, weather = self._world, self._weather
        if weather.loss and self._random() < weather.loss and self._rough():
            world.fault("reply lost")
            world.trace("network", "loses the reply to {}", flight.request)
            world.watch.disturbed(flight.request)
            return
        process = flight.process
        process.receive(world.timeline.now + self._delay(weather.tail), process.wire.answer, flight, reply, error)

    def push(self, name: str, place: Place) -> None:
        world, weather = self._world, self._weather
        process = world.processes[int(place.wake)]
        if weather.push_loss and self._random() < weather.push_loss and self._rough():
            world.fault("push lost")
            world.trace("network", "loses the push of {!r} to {}", name, place.owner)
            return
        now = world.timeline.now
        process.receive(now + self._delay(weather.tail), process.wire.deliver, place.owner, Push(place.token))
        if weather.duplication and self._random() < weather.duplication and self._rough():
            world.fault("push doubled")
            later = self._delay(weather.tail) + self._random() ** 3 * weather.double_within
            process.receive(now + later, process.wire.deliver, place.owner, Push(place.token))
