"""Bad input is refused before anything is sent, with the name of what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...aio.coordinator import Coordinator
from ...errors import Misconfigured
from ..context import Context
from ..faults import FaultInjector
from ..promise import promise

NAN, INFINITE = float("nan"), float("inf")
BAD_NAMES = ["", "n" * 513, "é" * 257, "a\nb", "a\x00b", "a\x7fb", "a\x85b", "\ud800", 7, None, b"a"]
BAD_OPTIONS: dict[str, list[Any]] = {
    "ttl": [0, -1, NAN, INFINITE, "10", None, True, 1e9],
    "timeout": [-1, NAN, INFINITE, "10", True],
    "max_hold": [0, -1, NAN, "10", True],
    "lock_delay": [-1, NAN, INFINITE, "10", None],
    "hold_at_least": [-1, NAN, INFINITE, "10", None],
    "margin": [-1, NAN, 16, "1"],
    "colour": ["green"],
}


class Refusals:
    """One coordinator that is given nothing but bad input: connecting anew for each piece would take long."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._faults = FaultInjector()
        self._locks: Coordinator | None = None

    async def __call__(self, what: str, make: Callable[..., Any], *bad: Any, **options: Any) -> None:
        """Made with bad input and used, it is refused; nothing has reached the engine."""
        if self._locks is None:
            self._locks = await self._context.connect(faults=self._faults, ttl=30)
        locks = self._locks

        async def use() -> None:
            await make(locks, *bad, **options)

        error = await self._context.raises(Misconfigured, use())
        assert isinstance(error, ValueError)
        assert what in str(error), f"{error} does not name {what}"
        assert self._faults.requests == [], f"{self._faults.requests[0]} was sent"


def lock(locks: Coordinator, name: Any, **options: Any) -> Any:
    return locks.lock(name, **options).acquire()


def lock_late(locks: Coordinator, name: Any, **options: Any) -> Any:
    return locks.lock(name).acquire(**options)


def reentrant(locks: Coordinator, name: Any, **options: Any) -> Any:
    return locks.reentrant(name, **options).acquire()


def read(locks: Coordinator, name: Any, **options: Any) -> Any:
    return locks.rwlock(name, **options).read().acquire()


def write(locks: Coordinator, name: Any, **options: Any) -> Any:
    return locks.rwlock(name, **options).write().acquire()


def permit(locks: Coordinator, name: Any, permits: Any = 3, **options: Any) -> Any:
    return locks.semaphore(name, permits=permits, **options).acquire()


def several(locks: Coordinator, names: Any, **options: Any) -> Any:
    return locks.lock_all(names if isinstance(names, list) else [names], **options).acquire()


def election(locks: Coordinator, name: Any, **options: Any) -> Any:
    return locks.election(name, **options).campaign()


def limiter(locks: Coordinator, name: Any, rate: Any = "5/s", burst: Any = None, **options: Any) -> Any:
    return locks.limiter(name, rate, burst=burst).acquire(**options)


def limiter_try(locks: Coordinator, name: Any, **options: Any) -> Any:
    return locks.limiter(name, "5/s").try_acquire(**options)


def evict(locks: Coordinator, name: Any) -> Any:
    return locks.evict(name, 1)


async def recipes(context: Context) -> list[Callable[..., Any]]:
    """Those that the engine has: the others are refused whatever they are given."""
    declared = (await context.connect()).promises
    found: list[Callable[..., Any]] = [lock, lock_late, reentrant, several, election]
    found += [read, write] if "shared" in declared else []
    return [*found, permit] if "counting" in declared else found


@promise()
async def names(context: Context) -> None:
    """Of every recipe: empty, too long, with control characters, or no text at all."""
    refused = Refusals(context)
    makes = [*await recipes(context), limiter, evict]
    for bad in BAD_NAMES:
        for make in makes:
            await refused("name", make, bad)


@promise()
async def options(context: Context) -> None:
    """Of every recipe, given to the recipe or to the call."""
    refused = Refusals(context)
    makes = await recipes(context)
    for option, values in BAD_OPTIONS.items():
        for bad in values:
            for make in makes:
                await refused(option, make, "door", **{option: bad})


@promise()
async def what_is_not_an_option_of_a_call(context: Context) -> None:
    """What a lock is cannot be changed by asking for it."""
    refused = Refusals(context)
    for inner in ("name", "weight", "capacity", "mode"):
        await refused(inner, lambda locks, **given: locks.lock("door").acquire(**given), **{inner: 2})


@promise()
async def a_ttl_that_the_engine_can_not_keep(context: Context) -> None:
    """Below its minimum."""
    refused = Refusals(context)
    least = (await context.connect())._core.backend.least_ttl
    for make in (lock, lock_late):
        await refused("ttl", make, "door", ttl=least / 2)


@promise()
async def counts(context: Context) -> None:
    """Permits and weights that cannot be."""
    refused = Refusals(context)
    for bad in (0, -1, 1.5, "2", None, True, 1 << 40):
        await refused("pool", permit, "pool", permits=bad)
        await refused("pool", permit, "pool", weight=bad)
    await refused("pool", permit, "pool", permits=3, weight=4)


@promise()
async def hooks(context: Context) -> None:
    """What is to be called on a loss can be called."""
    refused = Refusals(context)
    for make in (lock, reentrant, several, election):
        await refused("on_lost", make, "door", on_lost="x")


@promise()
async def tokens(context: Context) -> None:
    """A token is a whole number from 1, not its text."""
    refused = Refusals(context)
    for bad in ("12", 0, -1, 1.5, None, True):
        await refused("token", lambda locks, token: locks.evict("door", token), bad)


@promise()
async def several_names(context: Context) -> None:
    """None, one twice, or one string."""
    refused = Refusals(context)
    for bad in ([], ["a", "a"], ["a", ""], ["a", 7], [None]):
        await refused("name", several, bad)
    for alone in ("ab", 7, None):
        await refused("name", lambda locks, bad: locks.lock_all(bad).acquire(), alone)


@promise(needs={"limits"})
async def rates(context: Context) -> None:
    """Rates, bursts, costs and timeouts that cannot be."""
    refused = Refusals(context)
    for rate in ("", "5", "5/x", "0/s", "5/0s", "-1/s", "5 per s", 5, None, "1/0.0000001s", "9999999/s"):
        await refused("rate", limiter, "mail", rate=rate)
    for burst in (0, -1, 1.5, "2", True, 10**9):
        await refused("burst", limiter, "mail", rate="1/min", burst=burst)
    for cost in (0, -1, 1.5, "2", True, 6):
        await refused("cost", limiter, "mail", cost=cost)
        await refused("cost", limiter_try, "mail", cost=cost)
    for timeout in (-1, NAN, "2", True):
        await refused("timeout", limiter, "mail", timeout=timeout)
