"""Whoever only looks (an observer of an election, a sequencer's check) leaves the ensemble's log alone."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.testing.context import BODIES, Body, Context
from tests.zookeeper.ensemble import Ensemble
from tests.zookeeper.test_fail_over import play

LOOKS = 40
ATTEMPTS = 8
"""What other tests have left, the ensemble clears away meanwhile (sessions, containers), and logs that. That passes."""


def transactions(ensemble: Ensemble) -> int:
    for line in ensemble.leader.say("srvr").splitlines():
        if line.startswith("Zxid: "):
            return int(line.removeprefix("Zxid: "), 16)
    raise AssertionError("no leader")


@pytest.mark.parametrize("body", BODIES)
def test_looks_are_reads(ensemble: Ensemble, body: Body) -> None:
    async def program(context: Context) -> None:
        locks, watcher = await context.connect(), await context.connect()
        lease = await locks.election("boss").campaign()
        sequencer = lease.sequencer()
        assert await watcher.check(sequencer)
        await asyncio.sleep(0.2)  # it is confirmed
        spent = list[int]()
        while not spent or (spent[-1] >= LOOKS / 4 and len(spent) < ATTEMPTS):
            before = transactions(ensemble)
            for _ in range(LOOKS):
                leader = await watcher.election("boss").leader()
                assert leader is not None
                assert leader.token == lease.token
                assert await watcher.check(sequencer)
            spent.append(transactions(ensemble) - before)
        assert spent[-1] < LOOKS / 4, spent
        assert await lease.release()

    play(program, ensemble.url, body)
