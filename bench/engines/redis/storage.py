"""What Redis keeps: keys and memory. Each key of a line has an expiry, a day after its last use."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bench.model import Footprint, Storage, Target

CONTENDERS = ()
EXPIRE_ALL = """
local found = redis.call('SCAN', ARGV[1], 'COUNT', 2000)
for _, key in ipairs(found[2]) do
  if redis.call('PTTL', key) >= 0 then redis.call('PEXPIRE', key, 0) end
end
return found[1]
"""


def storage_of(urls: Callable[[Target], list[str]], marks: str = "") -> Storage:
    """Of all servers of a target together. `marks`: a sorted set with a member for each name of the last day."""

    def clients(target: Target) -> list[Any]:
        import redis

        return [redis.Redis.from_url(url) for url in urls(target)]

    def look(target: Target) -> Footprint:
        keys = size = lasting = 0
        for client in clients(target):
            with client:
                space = client.info("keyspace").get("db0", {"keys": 0, "expires": 0})
                keys += space["keys"] + (client.zcard(marks) if marks else 0)
                lasting += space["keys"] - space["expires"]
                size += client.info("memory")["used_memory"]
        return Footprint(keys, size, lasting)

    def clean(target: Target, seconds: float) -> None:
        end = time.monotonic() + seconds
        for client in clients(target):
            with client:
                if marks:
                    client.zremrangebyscore(marks, "-inf", int(time.time() * 1e6))
                cursor = b"0"
                while (cursor := client.eval(EXPIRE_ALL, 0, cursor)) != b"0" and time.monotonic() < end:
                    pass
                client.memory_purge()

    and_marks = ", and the marks are dropped that a node drops after a day" if marks else ""
    return Storage(
        look,
        clean,
        "keys and marks" if marks else "keys",
        "keys without expiry",
        f"Left: when the expiry of each key is moved to now{and_marks}.",
    )


STORAGE = storage_of(lambda target: [target.url])
