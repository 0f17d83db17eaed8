"""The verbs of records for threads and for asyncio, as one: the asyncio coordinator runs in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import holdfast
import holdfast.aio
from tests.support.record_checks import RecordClient

TIMEOUT_S = 60.0


@contextmanager
def record_client(url: Any, face: str = "sync", **options: Any) -> Iterator[RecordClient]:
    if face == "sync":
        with holdfast.connect(url, **options) as locks:
            yield RecordClient(locks._engine.backend, locks._run)
        return
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def do(coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(TIMEOUT_S)

    async def opened() -> Any:
        return await holdfast.aio.connect(url, **options).__aenter__()

    async def carried_out(flow: Any) -> Any:
        return await tasks._run(flow)

    try:
        tasks = do(opened())
        try:
            yield RecordClient(tasks._engine.backend, lambda flow: do(carried_out(flow)))
        finally:
            do(tasks.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(TIMEOUT_S)
        loop.close()


def count_up(records: RecordClient, key: str, times: int, versions: list[int]) -> int:
    """Raise the number in a record so often, by read and swap; how often somebody else was first."""
    conflicts = done = 0
    while done < times:
        before = records.read(key)
        number = 0 if before is None else int(before.data)
        swapped = records.swap(key, 0 if before is None else before.version, b"%d" % (number + 1))
        if swapped.done:
            assert swapped.record is not None
            versions.append(swapped.record.version)
            done += 1
        else:
            conflicts += 1
    return conflicts
