"""What blocks is done on a thread of its own, while the loop goes on.

A daemon thread and not the loop's executor: a loop that ends waits for its executor, and nobody can end a look-up of a
host name. Whoever is cancelled does not wait for it either.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from ..errors import BackendUnavailable

T = TypeVar("T")


async def on_a_thread(do: Callable[[], T]) -> T:
    """What `do` returns or raises."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(set_it: Callable[[], None]) -> None:
        if not done.done():  # cancelled meanwhile
            set_it()

    def run() -> None:
        try:
            result = do()
        except BaseException as error:  # noqa: BLE001  raised again in the task
            failure = error
            tell(lambda: done.set_exception(failure))
        else:
            tell(lambda: done.set_result(result))

    def tell(set_it: Callable[[], None]) -> None:
        try:
            loop.call_soon_threadsafe(settle, set_it)
        except RuntimeError:
            pass  # the loop has ended

    try:
        threading.Thread(target=run, name="holdfast-connect", daemon=True).start()
    except RuntimeError as error:
        raise BackendUnavailable(f"no thread could be started to connect: {error}") from error
    return await done
