"""holdfast in the measurements of tools: the same code on every engine, opened with its URL.

What an append is made in is the user's own connection, so each engine that has a log gives its own.
"""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from bench.limits import OURS
from bench.measures.tools import TOLD_COUNT
from bench.model import Target
from bench.tool_model import PartitionContender, PartitionPlan, ToolContender, ZombieContender

if TYPE_CHECKING:
    import holdfast

ZOMBIE_TTL_S = 1.0
ZOMBIE_WAIT_S = 60.0


@contextmanager
def _once(target: Target) -> Iterator[Callable[[str], object]]:
    import holdfast

    with holdfast.connect(target.url) as locks:
        once = locks.once("bench", keep="1h", takeover="refuse")

        def call(key: str) -> object:
            with once.attempt(key) as attempt:
                if not attempt.done:
                    attempt.complete({"charged": 100})
                return attempt.result

        yield call


@contextmanager
def first_call(target: Target) -> Iterator[Callable[[], object]]:
    with _once(target) as call:
        keys = new_keys()
        yield lambda: call(next(keys))


@contextmanager
def replay(target: Target) -> Iterator[Callable[[], object]]:
    with _once(target) as call:
        yield lambda: call("known")


def new_keys() -> Iterator[str]:
    """That nobody has used before, also if this is opened again."""
    run = uuid.uuid4().hex[:8]
    return (f"{run}-{number}" for number in itertools.count())


@contextmanager
def tell(target: Target) -> Iterator[Callable[[], object]]:
    import holdfast

    def count(actor: holdfast.Actor, amount: int) -> int:
        actor.state = (actor.state or 0) + amount
        return int(actor.state)

    with holdfast.connect(target.url) as locks, locks.actors("bench", count) as actors:

        def call() -> None:
            for _ in range(TOLD_COUNT - 1):
                actors.tell("account", 1)
            actors.ask("account", 1, timeout=60)

        yield call


def append(connect: Callable[[Target], AbstractContextManager[Any]]) -> ToolContender:
    """`connect` opens a connection of the user's, which is not in autocommit mode, with the log's tables; or a client
    of Redis, which has nothing to commit."""

    @contextmanager
    def open_append(target: Target) -> Iterator[Callable[[], object]]:
        from holdfast import log

        stream, versions, event_type = uuid.uuid4().hex, itertools.count(0), "paid"
        with connect(target) as connection:
            commit = getattr(connection, "commit", bool)

            def call() -> None:
                log.append(connection, stream, log.EventData(event_type, {"amount": 100}), expected=next(versions))
                commit()

            yield call

    return ToolContender("append of an event", OURS, "holdfast", open_append)


def work_once(target: Target, result: str, body: Callable[[], None]) -> str:
    """For `ZombieContender`: an attempt of one key."""
    import holdfast

    with holdfast.connect(target.url) as locks:
        with locks.once("zombie", keep="1h", takeover="rerun", ttl=ZOMBIE_TTL_S).attempt("order/7") as attempt:
            if not attempt.done:
                body()
                attempt.complete(result)
            return str(attempt.result)


def work_actor(target: Target, result: str, body: Callable[[], None]) -> str:
    """For `ZombieContender`: a message of one actor, told by everybody under the same id."""
    import holdfast

    def handle(actor: holdfast.Actor, message: str) -> None:
        body()
        actor.state = result

    with holdfast.connect(target.url) as locks:
        with locks.actors("zombie", handle, ttl=ZOMBIE_TTL_S) as actors:
            actors.tell("account", "go", message_id="go")
            end = time.monotonic() + ZOMBIE_WAIT_S
            while (view := actors.look("account")) is None or view.inbox:
                if time.monotonic() > end:
                    raise TimeoutError("the message was not handled")
                time.sleep(0.05)
            return str(view.state)


def member(target: Target, plan: PartitionPlan, tell: Callable[[str, int], None], over: threading.Event) -> None:
    """For `PartitionContender`."""
    import holdfast

    owned: set[int] = set()

    def start(shard: int, lease: holdfast.Lease) -> None:
        owned.add(shard)
        tell("start", shard)

    def end(shard: int, *_: object) -> None:
        if shard in owned:
            owned.remove(shard)
            tell("end", shard)

    with holdfast.connect(target.url, ttl=plan.ttl) as locks:
        tell("joins", 0)
        locks.partitions("bench", shards=plan.shards, on_assigned=start, on_revoking=end, on_lost=end).run(over)


ONCE = (
    ToolContender("once, first call", OURS, "holdfast", first_call),
    ToolContender("once, replay", OURS, "holdfast", replay),
)
TELL = ToolContender("tell and handle a message", OURS, "holdfast", tell, TOLD_COUNT)
ZOMBIE = ZombieContender("once", OURS, "holdfast", work_once)
ZOMBIE_ACTOR = ZombieContender("actors", OURS, "holdfast", work_actor)
PARTITION = PartitionContender(OURS, "holdfast", member)
