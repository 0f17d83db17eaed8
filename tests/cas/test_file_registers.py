"""The promises of all registers, on files; and what is special about files."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import holdfast.cas.aio
from holdfast import cas
from holdfast.errors import Misconfigured
from holdfast.fenced import FencedFile
from tests.cas.faces import Counter, Place, at_once, looping
from tests.cas.promises import *  # noqa: F403


@pytest.fixture(params=["threads", "asyncio"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    path = tmp_path / "stock"
    with ExitStack() as stack:

        def counter(codec: Any = cas.INTEGER, **more: Any) -> Counter:
            more = {"durable": False, "lock_timeout": 60, **more}
            if request.param == "threads":
                return Counter(cas.VersionedFile(path, codec, **more), at_once)
            loop = stack.enter_context(looping())
            return Counter(holdfast.cas.aio.VersionedFile(path, codec, **more), loop.wait)

        yield Place(counter, lambda token: FencedFile(path, timeout=60, durable=False).claim(token))


PROGRAM = """
import sys
from holdfast import cas
counter = cas.VersionedFile(sys.argv[1], cas.INTEGER, durable=False, lock_timeout=100, retry=cas.Retry(10_000, 100))
for _ in range(25):
    counter.update(lambda old: old + 1, default=0)
    print("done", flush=True)
"""


def start(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(path)], stdout=subprocess.PIPE, text=True)


def test_no_update_is_lost_between_processes(tmp_path: Path) -> None:
    processes = [start(tmp_path / "n") for _ in range(4)]
    for process in processes:
        process.communicate(timeout=200)
        assert process.returncode == 0
    assert (tmp_path / "n").read_bytes() == b"100"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["n", "n.fence"]


def test_a_process_that_is_killed_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    killed, other = start(tmp_path / "n"), start(tmp_path / "n")
    assert killed.stdout is not None
    acknowledged = [killed.stdout.readline() for _ in range(5)]
    killed.kill()
    acknowledged += killed.communicate(timeout=200)[0].splitlines()
    other.communicate(timeout=200)
    value = int((tmp_path / "n").read_bytes())
    assert 25 + len(acknowledged) <= value <= 25 + len(acknowledged) + 1


def test_another_writer_of_the_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "n"
    path.write_text("5")
    path.chmod(0o640)
    seen: list[int] = []

    def change(old: int) -> int:
        seen.append(old)
        if len(seen) == 1:
            path.write_text("7")
        return old + 1

    assert cas.VersionedFile(path, cas.INTEGER).update(change) == 8
    assert seen == [5, 7]
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_fence_whose_sidecar_is_gone_refuses(tmp_path: Path) -> None:
    path = tmp_path / "n"
    counter = cas.VersionedFile(path, cas.INTEGER)
    counter.create(0, lease=33)
    (tmp_path / "n.fence").unlink()
    with pytest.raises(cas.FenceRejected):
        counter.update(add_one, lease=33)  # noqa: F405
    assert path.read_bytes() == b"0"


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "n.fence", tmp_path / "pipe", "/dev/null", "a\0b", b"n", 7):
        with pytest.raises(Misconfigured):
            cas.VersionedFile(path, cas.INTEGER)  # type: ignore[arg-type]
    with pytest.raises(Misconfigured):
        cas.VersionedFile(tmp_path / "n", cas.INTEGER, lock_timeout="1")  # type: ignore[arg-type]
    with pytest.raises(Misconfigured, match="cannot be pickled"):
        pickle.dumps(cas.VersionedFile(tmp_path / "n", cas.INTEGER))


def test_a_default_is_not_changed_by_a_change_in_place(tmp_path: Path) -> None:
    """It may be a constant of the program, and begins as many registers as there are."""
    default: list[int] = []

    def add(old: list[int]) -> list[int]:
        old.append(1)
        return old

    for name in ("a", "b"):
        assert cas.VersionedFile(tmp_path / name, cas.JSON).update(add, default=default) == [1]
    assert default == []
