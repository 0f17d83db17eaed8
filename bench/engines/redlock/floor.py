"""The floor: five plain sockets, and the least that a Redlock needs. SET NX PX to all, then read all; a program that
deletes the key if it is still ours to all, then read all. No token, no memory, no clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from bench.engines.redlock import NODE_COUNT, connect, ports_of
from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock

DELETE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"


def command(*words: object) -> bytes:
    encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded)


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    with ExitStack() as stack:

        def worker_lock() -> WorkerLock:
            links = [stack.enter_context(connect(port)) for port in ports_of(target)]
            for link in links:
                link.sendall(command("SCRIPT", "LOAD", DELETE))
                sha = link.recv(4096)[5:45]
            owner = f"{id(links):x}"
            put = command("SET", f"floor/{name}", owner, "NX", "PX", 30000)
            delete = command("EVALSHA", sha, 1, f"floor/{name}", owner)

            def ask(frame: bytes, yes: bytes) -> bool:
                for link in links:
                    link.sendall(frame)
                return [link.recv(4096) for link in links].count(yes) > NODE_COUNT // 2

            def take() -> None:
                end = time.monotonic() + TAKE_TIMEOUT_S
                while not ask(put, b"+OK\r\n"):
                    ask(delete, b":1\r\n")
                    if time.monotonic() > end:
                        raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")
                    time.sleep(0.002)

            return WorkerLock(take=take, release=lambda: ask(delete, b":1\r\n"))

        yield worker_lock


@contextmanager
def named_pair(target: Target) -> Iterator[Callable[[str], object]]:
    with ExitStack() as stack:
        links = [stack.enter_context(connect(port)) for port in ports_of(target)]
        for link in links:
            link.sendall(command("SCRIPT", "LOAD", DELETE))
            sha = link.recv(4096)[5:45]

        def both(name: str) -> None:
            put = command("SET", f"floor/{name}", "owner", "NX", "PX", 30000)
            for frame in (put, command("EVALSHA", sha, 1, f"floor/{name}", "owner")):
                for link in links:
                    link.sendall(frame)
                for link in links:
                    link.recv(4096)

        yield both


CONTENDERS = (
    Contender(
        "bare Redis ×5",
        "floor",
        lock_factory=lock_factory,
        named_pair=named_pair,
        cannot={"leases": "a loop of EXPIRE would be a lock library of its own"},
    ),
)
