"""No thread can be started: the system has no more, or the interpreter is ending (Python 3.12 and later)."""

from __future__ import annotations

import asyncio
import threading

import pytest

import holdfast
import holdfast.aio
from holdfast.errors import BackendUnavailable
from tests.support.redis_server import RedisServer


@pytest.fixture
def no_threads(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a server whose name has to be looked up, which is done on a thread."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", start)
    return f"redis://localhost:{server.port}"


@pytest.mark.parametrize("request_timeout", [5.0, 0.9])
def test_locks_work_without(no_threads: str, request_timeout: float) -> None:
    with holdfast.connect(no_threads, request_timeout=request_timeout) as locks:
        lease = locks.lock("a", ttl=30).acquire()
        assert lease.release()


def test_tasks_are_told(no_threads: str) -> None:
    async def main() -> None:
        await holdfast.aio.connect(no_threads)

    with pytest.raises(BackendUnavailable, match="thread"):
        asyncio.run(main())
