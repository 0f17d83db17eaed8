"""What a holder does with its lease: sleeps, checks, renews, reads and writes the resource, acquires more.

Some holders write without checking their lease, however long they were paused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast._core.flow import NOW, Call, Flow, Sleep
from holdfast._core.lease import Hold

from .resource import ClaimRead, FencedWrite, ReadCounter, WriteCounter

if TYPE_CHECKING:
    from .workload import SimWorker

RESOURCE_TIMEOUT_S = 2.0
"""How long a holder waits for a reply of the resource."""


def use_lease(worker: SimWorker, holds: Sequence[Hold]) -> Flow[None]:
    chance = worker.chance
    if (ratio := worker.world.profile.long_hold_ratio) and chance.random() < ratio:
        yield Sleep(chance.uniform(1.0, 3.0) * holds[0].claim.spec.ttl)
    for _ in range(chance.randint(0, 4)):
        hold = chance.choice(holds)
        spec = hold.claim.spec
        alone = spec.weight == spec.capacity
        what = chance.random()
        if what < 0.1:
            hold.check((yield NOW))
        elif what < 0.3:
            yield Sleep(chance.random() ** 3 * min(2.0, 1.5 * spec.ttl))
        elif what < 0.65 and alone:
            yield from _fenced_update(worker, hold)
        elif what < 0.8 and alone:
            yield from _bare_update(worker, hold)
        elif what < 0.88:
            yield from worker.process.core.renew(hold)
        elif worker.may_take_more():
            yield from worker.round()


def _fenced_update(worker: SimWorker, hold: Hold) -> Flow[None]:
    chance, name = worker.chance, hold.claim.spec.name
    value: int = yield Call(ClaimRead(name, hold.token), RESOURCE_TIMEOUT_S)
    for _ in range(chance.randint(1, 2)):
        yield from _think(worker, hold)
        value += 1
        yield Call(FencedWrite(name, hold.token, value), RESOURCE_TIMEOUT_S)


def _bare_update(worker: SimWorker, hold: Hold) -> Flow[None]:
    name = hold.claim.spec.name
    value: int = yield Call(ReadCounter(name), RESOURCE_TIMEOUT_S)
    yield from _think(worker, hold)
    yield Call(WriteCounter(name, value + 1), RESOURCE_TIMEOUT_S)


def _think(worker: SimWorker, hold: Hold) -> Flow[None]:
    yield Sleep(worker.chance.random() ** 3 * 0.3)
    if worker.chance.random() < 0.5:
        hold.check((yield NOW))
