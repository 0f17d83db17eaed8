"""procrastinate: jobs with a lock (`lock="account"`) in the place of an actor's messages.

As with ours, one thread defers and a worker of the same process handles; the worker is asyncio's, in a thread of its
own, and is woken by LISTEN/NOTIFY. A job keeps no state, so the task updates a row by itself, on its own connection.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from bench.engines.postgresql.tools import DIALECT, session
from bench.measures.tools import TOLD_COUNT
from bench.model import Target
from bench.tool_model import ToolContender

CONTENDERS = ()
PROCRASTINATE = "procrastinate"
NOTE = (
    "the effect and the acknowledgement are two transactions; jobs of a dead worker wait until a program retries them"
)
ADD = "UPDATE hand_state SET value = value + %s WHERE name = 'account'"
TIMEOUT_S = 60.0


@contextmanager
def tell(target: Target) -> Iterator[Callable[[], object]]:
    import procrastinate
    import psycopg

    with session(target) as sql:
        for table in DIALECT.tables:
            sql.execute(table)
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=target.url))
    teller = app.with_connector(procrastinate.SyncPsycopgConnector(conninfo=target.url))
    handled, ready, over = threading.Semaphore(0), threading.Event(), asyncio.Event()
    state: Any = None

    async def add(amount: int) -> None:
        await state.execute(ADD, (amount,))
        handled.release()

    app.task(name="add")(add)

    async def work() -> None:
        nonlocal state
        async with app.open_async(), await psycopg.AsyncConnection.connect(target.url, autocommit=True) as state:
            if not await _is_applied(state):
                await app.schema_manager.apply_schema_async()
            worker = asyncio.create_task(app.run_worker_async(install_signal_handlers=False))
            ready.set()
            await over.wait()
            worker.cancel()
            with suppress(asyncio.CancelledError):
                await worker

    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        thread = threading.Thread(target=lambda: runner.run(work()), daemon=True)
        thread.start()
        try:
            assert ready.wait(TIMEOUT_S), "the worker did not start"
            with teller.open():
                job = teller.configure_task("add", lock="account")

                def call() -> None:
                    for _ in range(TOLD_COUNT):
                        job.defer(amount=1)
                    for _ in range(TOLD_COUNT):
                        assert handled.acquire(timeout=TIMEOUT_S), "a job was not handled"

                yield call
        finally:
            loop.call_soon_threadsafe(over.set)
            thread.join(TIMEOUT_S)


async def _is_applied(connection: Any) -> bool:
    rows = await connection.execute("SELECT to_regclass('procrastinate_jobs')")
    return bool((await rows.fetchone())[0])


TOOLS = (ToolContender("tell and handle a message", PROCRASTINATE, "peer", tell, TOLD_COUNT, NOTE),)
