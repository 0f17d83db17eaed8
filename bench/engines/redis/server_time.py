"""What the server itself spends on a pair, by its own account (`INFO commandstats`): holdfast beside redis-py's Lock.

python -m bench.engines.redis.server_time
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from bench.engines.redis import start

CONTENDERS = ()
"""None: this is asked of the server, not timed at a client."""

PAIRS = 1000
ROUNDS = 7
OURS_TO_SEND = ("set", "evalsha")
"""What clients send for a pair; what programs call is inside their time."""


def spent(client: Any, pair: Callable[[], object], inside: bool) -> tuple[float, float]:
    """Microseconds, and commands, for each pair. `inside`: SET is called by the programs, not by the client."""
    client.config_resetstat()
    for _ in range(PAIRS):
        pair()
    stats = client.info("commandstats")
    sent = [stats[f"cmdstat_{name}"] for name in OURS_TO_SEND if not (inside and name == "set")]
    return sum(each["usec"] for each in sent) / PAIRS, sum(each["calls"] for each in sent) / PAIRS


def main() -> None:
    import redis

    import holdfast

    with tempfile.TemporaryDirectory() as folder, start(Path(folder)) as target:
        client = redis.Redis.from_url(target.url)
        lock = client.lock("peer", timeout=30)
        with holdfast.connect(target.url) as locks:
            acquire = locks.lock("ours").acquire
            acquire().release()
            ratios = []
            for _ in range(ROUNDS):
                ours, count = spent(client, lambda: acquire().release(), inside=True)
                theirs, _ = spent(client, lambda: (lock.acquire(), lock.release()), inside=False)
                ratios.append(ours / theirs)
                print(f"holdfast {ours:.1f} µs in {count:g} commands, redis-py {theirs:.1f} µs: × {ratios[-1]:.2f}")
        print(f"server time for a pair, × redis-py's Lock (≤ 3): {median(ratios):.2f}")


if __name__ == "__main__":
    main()
