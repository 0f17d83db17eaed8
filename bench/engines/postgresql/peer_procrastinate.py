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
from bench.holdfast_tools import ZOMBIE_TTL_S
from bench.measures.tools import TOLD_COUNT
from bench.model import Target
from bench.tool_model import ToolContender, ZombieContender

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


def work(target: Target, result: str, body: Callable[[], None]) -> str:
    """One job with a lock, deferred by whoever comes first; a successor retries it when its worker is silent."""
    return asyncio.run(_work(target, result, body))


async def _work(target: Target, result: str, body: Callable[[], None]) -> str:
    import procrastinate
    import psycopg

    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=target.url))
    async with app.open_async(), await psycopg.AsyncConnection.connect(target.url, autocommit=True) as state:
        if not await _is_applied(state):
            await app.schema_manager.apply_schema_async()

        async def write() -> None:
            body()
            await state.execute("UPDATE zombie_state SET value = %s", (result,))

        task = app.task(name="write", queue="zombie")(write)
        await state.execute("CREATE TABLE IF NOT EXISTS zombie_state (value text)")
        if not list(await app.job_manager.list_jobs_async(task="write")):
            await state.execute("INSERT INTO zombie_state VALUES ('')")
            await task.configure(lock="account").defer_async()
        for stalled in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=ZOMBIE_TTL_S):
            await app.job_manager.retry_job(stalled)
        await app.run_worker_async(queues=["zombie"], wait=False, install_signal_handlers=False)
        if any(job.status != "succeeded" for job in await app.job_manager.list_jobs_async(task="write")):
            raise RuntimeError("the job is under way")
        value = await (await state.execute("SELECT value FROM zombie_state")).fetchone()
        assert value is not None
        return str(value[0])


async def _is_applied(connection: Any) -> bool:
    rows = await connection.execute("SELECT to_regclass('procrastinate_jobs')")
    return bool((await rows.fetchone())[0])


TOOLS = (ToolContender("tell and handle a message", PROCRASTINATE, "peer", tell, TOLD_COUNT, NOTE),)
ZOMBIES = (ZombieContender("actors", PROCRASTINATE, "peer", work),)
