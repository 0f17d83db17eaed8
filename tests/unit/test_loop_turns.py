"""Whoever takes a free lock again and again does not keep the other tasks of the loop from running."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import holdfast.aio

PAIRS_LIMIT = 2000


@pytest.mark.parametrize("engine", ["sqlite", "memory"])
def test_a_free_lock_lets_other_tasks_run(engine: str, tmp_path: Path) -> None:
    async def main() -> int:
        url = f"sqlite:///{tmp_path}/locks.db" if engine == "sqlite" else "memory://"
        async with holdfast.aio.connect(url) as locks:
            lock = locks.lock("free")
            async with lock:
                pass
            ran = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(ran.set_result, None)
            for pairs in range(PAIRS_LIMIT):
                async with lock:
                    pass
                if ran.done():
                    return pairs
        return PAIRS_LIMIT

    assert asyncio.run(main()) < PAIRS_LIMIT
