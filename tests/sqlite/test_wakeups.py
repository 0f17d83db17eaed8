"""The embedded engine when its file or its wake-up sockets are not where they were thought to be."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import holdfast
import holdfast.aio
from holdfast import BackendUnavailable, Coordinator
from holdfast.backends.queue_backend import Renew, Take
from holdfast.backends.sqlite import store, wakeup_socket
from holdfast.model import Claim, LockSpec
from tests.sqlite.test_file import connect, eventually, in_thread, path, waiters

__all__ = ["connect", "path"]  # fixtures


@pytest.mark.parametrize("body", ["sync", "asyncio"])
def test_a_deleted_file_is_noticed_under_contention(path: Path, body: str) -> None:
    """Several contend on the dead inode, so that nobody takes a free lock; a new file's holder holds meanwhile."""
    ended: list[BaseException] = []
    began = time.monotonic()

    def contend() -> None:
        with holdfast.connect(f"sqlite://{path}", ttl=2) as locks, suppressed(ended):
            while time.monotonic() < began + 20:
                with locks.lock("a"):
                    pass

    async def contend_async() -> None:
        async with holdfast.aio.connect(f"sqlite://{path}", ttl=2) as locks:

            async def one() -> None:
                with suppressed(ended):
                    while time.monotonic() < began + 20:
                        async with locks.lock("a"):
                            await asyncio.sleep(0)

            await asyncio.gather(one(), one(), one())

    holdfast.connect(f"sqlite://{path}").close()
    if body == "sync":
        threads = [threading.Thread(target=contend) for _ in range(5)]
    else:
        threads = [threading.Thread(target=asyncio.run, args=(contend_async(),))]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    for part in path.parent.glob("locks.db*"):
        if part.is_file():
            part.unlink()
    with holdfast.connect(f"sqlite://{path}") as new, new.lock("a"):
        for thread in threads:
            thread.join(60)
    assert ended
    assert all(isinstance(error, BackendUnavailable) for error in ended), ended


@contextmanager
def suppressed(ended: list[BaseException]) -> Iterator[None]:
    try:
        yield
    except holdfast.HoldfastError as error:
        ended.append(error)


def test_a_waiter_whose_socket_is_out_of_reach_keeps_its_turn(connect: Callable[..., Coordinator], path: Path) -> None:
    """As with the same folder mounted elsewhere: it is granted, and learns of it by its own look."""
    locks = connect()
    holder = locks.lock("a").acquire()
    first, got = in_thread(connect(), "a", ttl=1.5)
    eventually(lambda: waiters(locks, "a") == 1, "the first waiter")
    [box] = wakeup_socket.folders_for(path)[0].iterdir()
    second, late = in_thread(connect(), "a")
    eventually(lambda: waiters(locks, "a") == 2, "the second waiter")
    box.unlink()
    assert holder.release()
    first.join(20)
    assert got
    assert not late
    assert got[0].release()
    second.join(20)
    assert late[0].release()


def test_a_waiter_that_was_granted_by_its_own_look_is_not_taken_out(path: Path) -> None:
    """Its process pauses between the commit and the wake-up of the one who releases; its socket is gone meanwhile."""
    holder, waiter = Claim(LockSpec("a"), "holder", ""), Claim(LockSpec("a"), "waiter", "")
    with closing(store.SQLiteStore(path, "ns", "host")) as file_of_both:
        assert file_of_both.take_free(holder)
        assert file_of_both.join(waiter, "a-socket") is not None
        promoted = file_of_both.hand_over(holder)
        assert promoted is not None
        [heir] = promoted
        [taken], _ = file_of_both.carry_out(Take((waiter,), True), "a-socket")
        assert taken.token == heir.token
        assert file_of_both.take_out(heir) == []
        assert file_of_both.carry_out(Renew([Claim(waiter.spec, waiter.owner, "", heir.token)]), "")[0] == ["held"]


def test_a_socket_has_a_name_in_the_file_and_no_path(connect: Callable[..., Coordinator], path: Path) -> None:
    """So that whoever has the same folder mounted elsewhere finds it."""
    locks = connect()
    elsewhere = path.parent.with_name(path.parent.name + "-elsewhere")
    elsewhere.symlink_to(path.parent)
    with holdfast.connect(f"sqlite://{elsewhere}/locks.db") as other:
        holder = locks.lock("a").acquire()
        thread, got = in_thread(other, "a")
        eventually(lambda: waiters(locks, "a") == 1, "the waiter")
        with closing(sqlite3.connect(path)) as look:
            [(wake,)] = look.execute("SELECT wake FROM claim WHERE wake <> ''")
        assert "/" not in wake
        elsewhere.unlink()  # from here on its path means nothing to anybody
        assert holder.release()
        thread.join(0.8)  # a look of its own comes later
        elsewhere.symlink_to(path.parent)
        thread.join(20)
        assert got[0].release()


@pytest.mark.parametrize("planted", ["open to all", "a link", "somebody else's"])
def test_a_folder_for_wake_ups_that_somebody_else_made_is_not_used(
    connect: Callable[..., Coordinator], path: Path, planted: str
) -> None:
    connect()
    folder, aside = wakeup_socket.folders_for(path)[0], path.parent / "aside"
    aside.mkdir(mode=0o700)
    if planted == "a link":
        folder.symlink_to(aside)
    else:
        folder.mkdir(mode=0o700)
        if planted == "open to all":
            folder.chmod(0o777)
        elif os.getuid() == 0:
            os.chown(folder, 12345, 12345)
        else:
            pytest.skip("only root can make a folder somebody else's")
    with pytest.raises(PermissionError, match="only this user"):
        wakeup_socket.WakeupSocket.beside(path)
    locks = connect()
    holder = locks.lock("a").acquire()
    thread, got = in_thread(connect(), "a")
    eventually(lambda: waiters(locks, "a") == 1, "the waiter")
    assert holder.release()
    thread.join(20)
    assert got[0].release()
    assert not list(folder.iterdir())
    folder.unlink() if folder.is_symlink() else folder.rmdir()  # it may be in the temporary folder


CONTEND = """
import sys, time, holdfast
grants, end = 0, time.monotonic() + 3
with holdfast.connect("sqlite://" + sys.argv[1]) as locks:
    while time.monotonic() < end:
        with locks.lock("a", timeout=30):
            grants += 1
print(grants)
"""


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """One whose path leaves room for a socket's."""
    with tempfile.TemporaryDirectory(prefix="hf", dir="/tmp") as folder:
        yield Path(folder)


def test_the_same_folder_mounted_elsewhere_gets_its_share(short_folder: Path) -> None:
    """Two containers of one machine: each has a path for the folder that means nothing to the other."""
    here, there = short_folder / "a", short_folder / "b"
    here.mkdir()
    there.mkdir()
    elsewhere = f'mount --bind {here} {there} && mount -t tmpfs none {here} && exec "$@"'
    apart = ["unshare", "--mount", "sh", "-c", elsewhere, "sh"]
    if not shutil.which("unshare") or subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("no mounts of one's own here")
    contend = [sys.executable, "-c", CONTEND]
    with (
        subprocess.Popen([*contend, f"{here}/locks.db"], stdout=subprocess.PIPE) as first,
        subprocess.Popen([*apart, *contend, f"{there}/locks.db"], stdout=subprocess.PIPE) as second,
    ):
        grants = sorted(int(process.communicate(timeout=60)[0]) for process in (first, second))
    assert grants[0] * 20 > grants[1], grants
