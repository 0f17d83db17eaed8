"""What a holder does with its lease: works, checks, renews, reads and writes what the lock protects, takes more.

Some holders are careless: they write without a look at their lease, however long they have slept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast._core.flow import NOW, Call, Flow, Sleep
from holdfast._core.lease import Hold

from .resource import ClaimRead, FencedWrite, Read, Write

if TYPE_CHECKING:
    from .workload import Worker

TIMEOUT = 2.0
"""How long a holder waits for the resource."""


def body(worker: Worker, holds: Sequence[Hold]) -> Flow[None]:
    chance = worker.chance
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


def _fenced_update(worker: Worker, hold: Hold) -> Flow[None]:
    chance, name = worker.chance, hold.claim.spec.name
    value: int = yield Call(ClaimRead(name, hold.token), TIMEOUT)
    for _ in range(chance.randint(1, 2)):
        yield from _think(worker, hold)
        value += 1
        yield Call(FencedWrite(name, hold.token, value), TIMEOUT)


def _bare_update(worker: Worker, hold: Hold) -> Flow[None]:
    name = hold.claim.spec.name
    value: int = yield Call(Read(name), TIMEOUT)
    yield from _think(worker, hold)
    yield Call(Write(name, value + 1), TIMEOUT)


def _think(worker: Worker, hold: Hold) -> Flow[None]:
    yield Sleep(worker.chance.random() ** 3 * 0.3)
    if worker.chance.random() < 0.5:
        hold.check((yield NOW))
