"""What the server itself spends on a pair, by its own account (`INFO commandstats`), beside redis-py's Lock."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from bench.model import Target
from bench.outcomes import Figure
from bench.progress import say

CONTENDERS = ()
"""None: this is asked of the server, not timed at a client."""

PAIR_COUNT = 1000
ROUND_COUNT = 7
OURS_TO_SEND = ("set", "evalsha")
"""What clients send for a pair; what programs call is inside their time."""


def spent(client: Any, pair: Callable[[], object], inside: bool) -> tuple[float, float]:
    """Microseconds, and commands, for each pair. `inside`: SET is called by the programs, not by the client."""
    client.config_resetstat()
    for _ in range(PAIR_COUNT):
        pair()
    stats = client.info("commandstats")
    sent = [stats[f"cmdstat_{name}"] for name in OURS_TO_SEND if not (inside and name == "set")]
    return sum(each["usec"] for each in sent) / PAIR_COUNT, sum(each["calls"] for each in sent) / PAIR_COUNT


def figures(target: Target, quick: bool) -> list[Figure]:
    import redis

    import holdfast

    say("what the server spends on a pair")
    client = redis.Redis.from_url(target.url)
    lock = client.lock("peer", timeout=30)
    ratios, counts = [], []
    with holdfast.connect(target.url) as locks:
        acquire = locks.lock("ours").acquire
        acquire().release()
        for _ in range(ROUND_COUNT):
            ours, count = spent(client, lambda: acquire().release(), inside=True)
            theirs, _ = spent(client, lambda: (lock.acquire(), lock.release()), inside=False)
            ratios.append(ours / theirs)
            counts.append(count)
    ratio, count = median(ratios), max(counts)
    return [
        Figure("server time for a pair, × redis-py's Lock", f"≤ 3: {ratio:.2f}", ratio <= 3),
        Figure("commands for a pair", f"2: {count:g}", count == 2),
    ]
