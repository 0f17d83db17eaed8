"""Names that are used once, with something that outlives the hold: what is left behind does not pile up.

Each coordinator here is a process of its own, as a job that runs now and then would be.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from holdfast.testing.context import BODIES, Body, Context
from tests.zookeeper.ensemble import Ensemble
from tests.zookeeper.test_fail_over import play

JOBS, NAMES_EACH = 40, 4


def names_with_tombstones(ensemble: Ensemble, namespace: str) -> int:
    from kazoo.client import KazooClient
    from kazoo.exceptions import NoNodeError

    client: Any = KazooClient(ensemble.hosts)
    client.start(20)
    try:
        found = 0
        for name in client.get_children(f"/{namespace}"):
            with suppress(NoNodeError):  # the server removes what is empty
                found += any(node.startswith("~") for node in client.get_children(f"/{namespace}/{name}"))
        return found
    finally:
        client.stop()
        client.close()


@pytest.mark.parametrize("body", BODIES)
def test_what_hold_at_least_leaves_behind_is_removed_by_others(ensemble: Ensemble, body: Body) -> None:
    async def program(context: Context) -> None:
        for job in range(JOBS):
            locks = await context.connect()
            for number in range(NAMES_EACH):
                lease = await locks.lock(f"job-{job}-{number}", hold_at_least=0.2).acquire()
                assert await lease.release()
            await locks.close()
        left = names_with_tombstones(ensemble, context.namespace)
        assert left < JOBS * NAMES_EACH / 2, "they pile up"

    play(program, ensemble.url, body)
