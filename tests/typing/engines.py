"""What a type checker must see of engines: their requests and replies fit. Checked by `make check`, never run.

Each `type: ignore` is a bug that must be found: one that is not found is an unused comment, and an error.
"""

from __future__ import annotations

from holdfast.aio import Coordinator as TaskCoordinator
from holdfast.backends.etcd.client import EtcdClient
from holdfast.backends.memory.engine import MemoryEngine
from holdfast.backends.memory.wires import MemoryWire
from holdfast.backends.mysql.engine import MySQLEngine
from holdfast.backends.queue_backend import QueueBackend, QueueReply, QueueRequest, Survey, Take, Taken
from holdfast.backends.redis.client import RedisClient
from holdfast.backends.redis.engine import RedisEngine
from holdfast.backends.sqlite.engine import SQLiteEngine
from holdfast.flow import Call, RequestFlow
from holdfast.model import Claim
from holdfast.ports import AnyEngine, Backend, Engine, Opened
from holdfast.sync.coordinator import Coordinator
from holdfast.sync.driver import run


def every_engine_is_one(
    memory: MemoryEngine, sqlite: SQLiteEngine, redis: RedisEngine, mysql: MySQLEngine
) -> list[Engine[QueueRequest, QueueReply]]:
    return [memory, sqlite, redis, mysql]


async def a_coordinator_takes_any(engine: Engine[int, str]) -> None:
    any_engine: AnyEngine = engine
    Coordinator(any_engine, 30.0, None, None)
    TaskCoordinator(engine, await engine.async_wire(), 30.0, None, None)


def a_client_carries_out_what_its_backend_asks(
    backend: QueueBackend, client: RedisClient, other: EtcdClient
) -> Opened[QueueRequest, QueueReply]:
    Opened[QueueRequest, QueueReply](backend, other)  # type: ignore[arg-type]
    return Opened(backend, client)


def a_wire_is_given_its_own_requests(wire: MemoryWire, backend: QueueBackend, claim: Claim) -> None:
    run(backend.take(claim, True), wire)
    wire.call(Survey("a"), 1.0)
    wire.call("take it", 1.0)  # type: ignore[arg-type]
    run(_asks_with_words(), wire)  # type: ignore[misc]


def _asks_with_words() -> RequestFlow[str, list[Taken]]:
    replies: list[Taken] = yield Call("take it", 1.0)
    yield Call(Take((), True), 1.0)  # type: ignore[arg-type]
    return replies


def a_backend_says_what_it_asks(
    other: Backend[str, int], queue: QueueBackend
) -> list[Backend[QueueRequest, QueueReply]]:
    return [queue, other]  # type: ignore[list-item]
