"""A lease is kept alive while its holder lives: through many ttls, and through faults that pass."""

from __future__ import annotations

import asyncio

from ...errors import LeaseLost
from ...model import State
from ...observe.event import Event
from ..promise import promise
from ..stage import Stage
from ..trouble import Trouble


@promise()
async def a_lease_outlives_its_ttl(stage: Stage) -> None:
    """Several times over, whether it was free or had to be waited for; and nobody else gets in."""
    locks = await stage.connect()
    ttl = 10.0 if stage.virtual else stage.seconds(1.5)
    first = await locks.lock("waited for", ttl=ttl).acquire()
    waiter = stage.start(locks.lock("waited for", ttl=ttl).acquire())
    await stage.queued("waited for", 1)
    assert await first.release()
    leases = [await locks.lock("free", ttl=ttl).acquire(), await waiter]
    await asyncio.sleep(ttl * (20 if stage.virtual else 1.3))
    for lease in leases:
        lease.check()
        assert lease.state is State.HELD
        assert await locks.lock(lease.name).try_acquire() is None
        assert await lease.release()


@promise()
async def by_hand(stage: Stage) -> None:
    """`renew()` gives a whole ttl from now on, whether or not the keeper renews."""
    locks = await stage.connect()
    lease = await locks.lock("door", ttl=60, renew=False).acquire()
    clock = asyncio.get_running_loop().time
    began = clock()
    until = began + lease.remaining()
    await stage.eventually(lambda: clock() > began + 0.02, "time to pass")
    await lease.renew()
    assert clock() + lease.remaining() > until + 0.01
    assert await lease.release()
    error = await stage.fails(LeaseLost, lease.renew())
    assert error.token == lease.token


@promise()
async def a_fault_that_passes_is_borne(stage: Stage) -> None:
    """A renewal that fails puts the lease in jeopardy; the next that succeeds brings it back. It is never lost."""
    trouble, events = Trouble(), list[Event]()
    locks = await stage.connect(trouble=trouble, on_event=events.append)
    ttl = 30.0 if stage.virtual else stage.seconds(3.0)
    lease = await locks.lock("door", ttl=ttl).acquire()
    trouble.cut()
    await stage.eventually(lambda: lease.state is State.JEOPARDY, "jeopardy")
    lease.check()
    trouble.mend()
    await stage.eventually(lambda: lease.state is State.HELD, "recovery")
    assert lease.remaining() > ttl / 2
    assert not lease.lost.is_set()
    assert await lease.release()
    assert [event.kind for event in events] == ["acquired", "jeopardy", "recovered", "released"]


@promise()
async def many_leases_share_few_requests(stage: Stage) -> None:
    """A thousand leases are renewed in batches, not one by one, and none is lost."""
    trouble = Trouble()
    locks = await stage.connect(trouble=trouble)
    count, ttl = 1000, 30.0 if stage.virtual else stage.seconds(3.0)
    leases = [await locks.lock(f"job/{number}", ttl=ttl).acquire() for number in range(count)]
    taken = trouble.points
    tokens = {lease.token for lease in leases}
    await stage.eventually(lambda: trouble.points > taken, "renewals")
    await asyncio.sleep(ttl * 5 if stage.virtual else ttl * 0.4)
    assert not any(lease.state is State.LOST for lease in leases)
    assert trouble.points - taken < count / (10 if stage.virtual else 3)
    assert {claim.token for view in await stage.survey("job/") for claim in view.holders} == tokens
    for lease in leases:
        assert await lease.release()
