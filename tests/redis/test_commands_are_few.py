"""What holdfast sends to Redis, by the server's own count."""

from __future__ import annotations

from collections.abc import Callable

import holdfast
from tests.redis.faces import calls
from tests.support.redis_server import RedisServer


def counted(server: RedisServer, work: Callable[[], object]) -> int:
    before = calls(server, "evalsha", "eval")
    others = calls(server, "subscribe", "scan", "wait", "ping")
    work()
    assert calls(server, "subscribe", "scan", "wait", "ping") == others
    return calls(server, "evalsha", "eval") - before


def test_a_pair_is_two_commands(server: RedisServer) -> None:
    with holdfast.connect(server.url) as locks:
        assert locks.lock("warm").acquire().release()
        assert counted(server, lambda: [locks.lock(str(n)).acquire().release() for n in range(20)]) == 40


def test_many_renewals_are_few_commands(server: RedisServer) -> None:
    with holdfast.connect(server.url) as locks:
        leases = [locks.lock(str(number), ttl=30).acquire() for number in range(1000)]
        claims = [lease._hold.granted() for lease in leases]
        leases[0].renew()  # the server knows the program now
        assert counted(server, lambda: locks._run(locks._core.backend.renew(claims))) == 1
        for lease in leases:
            assert lease.release()
