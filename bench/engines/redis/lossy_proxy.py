"""A proxy that loses replies at random, between threads and tasks and their server.

Every caller must get a result or a clear error, no token twice (that would be another's reply), and nobody may hang;
when it is over, no lock may be left behind for longer than its ttl.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter

from bench.model import Target
from bench.outcomes import Figure
from bench.progress import say
from tests.redis.proxy import Proxy, proxied

CONTENDERS = ()
TTL, REQUEST_TIMEOUT_S, LOSS = 2.0, 0.3, 0.02
NAMES = ("a", "b", "c")
THREADS, TASK_COUNT = 6, 12
SECONDS = {True: 5.0, False: 60.0}
"""For a quick run, and for a full one."""
GRACE_S = 30.0
"""Longer than any caller may need after the end."""


class Ledger:
    """What the callers were told."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._tokens: set[tuple[str, int]] = set()
        self.told: Counter[str] = Counter()
        self.wrong: list[str] = []

    def granted(self, asked: str, name: str, token: int) -> None:
        with self._mutex:
            if name != asked or (name, token) in self._tokens:
                self.wrong.append(f"{asked}: {name} {token}")
            self._tokens.add((name, token))
            self.told["grants"] += 1

    def failed(self, error: BaseException) -> None:
        from holdfast.errors import BackendUnavailable, LeaseLost, NotAcquired

        with self._mutex:
            if isinstance(error, (NotAcquired, BackendUnavailable, LeaseLost)):
                self.told["clear errors"] += 1
            else:
                self.wrong.append(repr(error))


def figures(target: Target, quick: bool) -> list[Figure]:
    seconds = SECONDS[quick]
    say(f"lossy proxy: {seconds:.0f} s")
    ledger = Ledger()
    with proxied(int(target.url.rpartition(":")[2])) as proxy:
        hung = _threads_and_tasks(proxy, ledger, time.monotonic() + seconds)
    left = _left_behind(target)
    told = ", ".join(f"{count} {what}" for what, count in sorted(ledger.told.items()))
    met = not ledger.wrong and not hung and not left and proxy.lost > 0
    text = f"wrong 0, hung 0, left 0: {len(ledger.wrong)}, {hung}, {left} ({proxy.lost} losses, {told})"
    return [Figure(f"replies lost at random for {seconds:.0f} s", text, met)]


def _threads_and_tasks(proxy: Proxy, ledger: Ledger, end: float) -> int:
    """How many callers have not come back."""
    import holdfast

    with holdfast.connect(proxy.url, request_timeout=REQUEST_TIMEOUT_S, ttl=TTL, namespace="lossy") as locks:

        def work(name: str) -> None:
            while time.monotonic() < end:
                try:
                    with locks.lock(name, timeout=1) as lease:
                        ledger.granted(name, lease.name, lease.token)
                except Exception as error:  # noqa: BLE001 - whatever a caller is told is what is looked at
                    ledger.failed(error)

        callers = [threading.Thread(target=work, args=(NAMES[n % len(NAMES)],), daemon=True) for n in range(THREADS)]
        callers.append(threading.Thread(target=lambda: asyncio.run(_tasks(proxy, ledger, end)), daemon=True))
        proxy.loss = LOSS
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(max(0.0, end + GRACE_S - time.monotonic()))
        proxy.loss = 0.0
    return sum(caller.is_alive() for caller in callers)


async def _tasks(proxy: Proxy, ledger: Ledger, end: float) -> None:
    import holdfast.aio

    async with holdfast.aio.connect(
        f"redis://127.0.0.1:{proxy.port}", request_timeout=REQUEST_TIMEOUT_S, ttl=TTL, namespace="lossy"
    ) as locks:

        async def work(name: str) -> None:
            while time.monotonic() < end:
                try:
                    async with locks.lock(name, timeout=1) as lease:
                        ledger.granted(name, lease.name, lease.token)
                except Exception as error:  # noqa: BLE001 - as above
                    ledger.failed(error)

        await asyncio.gather(*(work(NAMES[n % len(NAMES)]) for n in range(TASK_COUNT)))


def _left_behind(target: Target) -> int:
    """Locks that are still there after the longest that a ttl can last."""
    import holdfast

    with holdfast.connect(target.url, namespace="lossy") as locks:
        end = time.monotonic() + TTL + 1
        while (left := len(locks.survey())) and time.monotonic() < end:
            time.sleep(0.05)
        return left
