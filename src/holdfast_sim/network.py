"""The network: carries requests, replies and pushes; draws a delay, a loss or a duplicate for each message.

A message may be late (with a heavy tail: sometimes later than any timeout), lost, or delivered twice, the second time
much later. Messages may arrive out of order. Only traffic with the resource is never duplicated: a write there is a
transaction.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

from holdfast._core.line import Place
from holdfast.backends.execute import push_to

from .driver import TICK_S

if TYPE_CHECKING:
    from .wire import PendingRequest
    from .world import World

LONGEST_DELAY_S = 8.0
"""The longest delay of a message."""


class SimNetwork:
    """Delivers messages, under the faults of the seed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = world.chance.random
        self._profile = world.profile

    def _faults_active(self) -> bool:
        return self._world.timeline.now < self._profile.faults_end_at

    def _delay(self, tail: float) -> float:
        profile = self._profile
        if tail and self._random() < tail and self._faults_active():
            return min(LONGEST_DELAY_S, 0.02 / (1.0 - self._random()))
        return TICK_S + min(20.0, -log(1.0 - self._random())) * profile.latency

    def send(self, pending: PendingRequest) -> None:
        world, profile = self._world, self._profile
        now = world.timeline.now
        server = world.engine if world.is_verb(pending.request) else world.resources
        world.trace(pending.process.name, "sends {}", pending.request)
        if profile.loss and self._random() < profile.loss and self._faults_active():
            world.fault("request lost")
            world.trace("network", "loses it")
            world.invariants.disturbed(pending.request)
            return
        delay = self._delay(profile.tail if server is world.engine else profile.resource_tail)
        world.timeline.at(now + delay, server.receive, pending, False)
        if (
            server is world.engine
            and profile.duplication
            and self._random() < profile.duplication
            and self._faults_active()
        ):
            world.fault("request doubled")
            pending.duplicated = True
            world.invariants.disturbed(pending.request)
            later = delay + self._delay(profile.tail) + self._random() ** 3 * profile.duplicate_within_s
            world.timeline.at(now + later, server.receive, pending, True)

    def reply(self, pending: PendingRequest, reply: Any, error: BaseException | None = None) -> None:
        world, profile = self._world, self._profile
        if profile.loss and self._random() < profile.loss and self._faults_active():
            world.fault("reply lost")
            world.trace("network", "loses the reply to {}", pending.request)
            world.invariants.disturbed(pending.request)
            return
        process = pending.process
        process.receive(world.timeline.now + self._delay(profile.tail), process.wire.answer, pending, reply, error)

    def push(self, name: str, place: Place) -> None:
        world, profile = self._world, self._profile
        process = world.processes[int(place.wake)]
        if profile.push_loss and self._random() < profile.push_loss and self._faults_active():
            world.fault("push lost")
            world.trace("network", "loses the push of {!r} to {}", name, place.owner)
            return
        now = world.timeline.now
        process.receive(now + self._delay(profile.tail), process.wire.deliver, place.owner, push_to(place))
        if profile.duplication and self._random() < profile.duplication and self._faults_active():
            world.fault("push doubled")
            later = self._delay(profile.tail) + self._random() ** 3 * profile.duplicate_within_s
            process.receive(now + later, process.wire.deliver, place.owner, push_to(place))
