"""The embedded engine and its file: what happens to it, to the machine, and to the wake-ups beside it."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import holdfast
import holdfast.aio
from holdfast import BackendUnavailable, Coordinator, Misconfigured, clock
from holdfast.backends.sqlite import aio_wire, checkpoint, file, store, wakeup_socket, wires
from holdfast.backends.sqlite.machine import Machine, this_machine


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "locks.db"


@pytest.fixture
def connect(path: Path) -> Iterator[Callable[..., Coordinator]]:
    opened: list[Coordinator] = []

    def connect(**options: float) -> Coordinator:
        opened.append(holdfast.connect(f"sqlite://{path}", **options))  # type: ignore[arg-type]
        return opened[-1]

    yield connect
    for locks in opened:
        locks.close()


def eventually(look: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 20
    while not look():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.002)


def in_thread(locks: Coordinator, name: str, **options: float) -> tuple[threading.Thread, list[holdfast.Lease]]:
    got: list[holdfast.Lease] = []
    lock = locks.lock(name, **options)  # type: ignore[arg-type]

    def take() -> None:
        try:
            got.append(lock.acquire())
        except Misconfigured:
            pass  # closed at the end of a test that let it wait

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    return thread, got


def die(box: Path) -> None:
    """What is left of a waiter's socket after a crash: the path, and nobody behind it."""
    box.unlink()
    dead = wakeup_socket.WakeupSocket(box.parent)
    dead.disown()
    os.rename(dead.path, box)


def waiters(locks: Coordinator, name: str) -> int:
    return sum(len(view.waiters) for view in locks.survey(name))


def test_a_file_that_was_replaced_is_noticed(
    connect: Callable[..., Coordinator], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = connect()
    old.lock("a").acquire().release()
    for part in path.parent.glob("locks.db*"):
        if part.is_file():
            part.unlink()
    new = connect()
    with new.lock("a"):
        real = clock.now
        for module in (file, store):
            monkeypatch.setattr(module, "now", lambda: real() + 5.0)  # the old one looks every second or so
        with pytest.raises(BackendUnavailable, match="deleted, replaced"):
            old.lock("a", timeout=0.5, ttl=5).acquire()


def test_a_format_of_the_future_is_refused(connect: Callable[..., Coordinator], path: Path) -> None:
    connect().close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 999")
    with pytest.raises(Misconfigured, match="newer holdfast"):
        connect()


def test_after_a_restart_of_the_machine_nobody_holds_and_tokens_go_on(
    connect: Callable[..., Coordinator], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = connect()
    lease = before.lock("a", ttl=3600).acquire()
    limiter = before.limiter("mail", "1/h")
    assert limiter.try_acquire()
    monkeypatch.setattr(file, "this_machine", lambda: Machine(this_machine().id, "another start"))
    after = connect()
    successor = after.lock("a", timeout=0).acquire()
    assert successor.token > lease.token
    assert after.limiter("mail", "1/h").try_acquire()
    assert successor.release()


def test_a_file_that_stays_busy_is_waited_for_no_longer_than_the_timeout(
    connect: Callable[..., Coordinator], path: Path
) -> None:
    locks = connect(request_timeout=0.3)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        with pytest.raises((BackendUnavailable, holdfast.NotAcquired), match=r"busy|not acquired"):
            locks.lock("a", timeout=0.3, ttl=5).acquire()
        assert time.monotonic() - began < 10
        other.execute("COMMIT")
    assert locks.lock("a").acquire().release()


def test_a_busy_moment_is_not_noticed(connect: Callable[..., Coordinator], path: Path) -> None:
    locks = connect()
    locks.lock("a").acquire().release()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.1, other.execute, ("COMMIT",)).start()
        assert locks.lock("a").acquire().release()


def test_the_log_begins_anew_even_if_somebody_is_always_writing(
    connect: Callable[..., Coordinator], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wires, "CHECKPOINT_EVERY_COUNT", 1 << 60)  # nobody moves it at the same time
    locks = connect()

    class Overtaken(sqlite3.Connection):
        """As long as it lets others write, they add to the log what it then has not moved."""

        def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
            return super().execute("SELECT 0, 1000, 900" if "PASSIVE" in sql else sql, *rest)

    monkeypatch.setattr(checkpoint, "LONG_LOG", 20)
    for _ in range(10):
        for _ in range(20):
            assert locks.lock("a").acquire().release()
        with monkeypatch.context() as patch:
            patch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Overtaken))
            checkpoint.checkpoint(path)
    assert Path(f"{path}-wal").stat().st_size < 100 * 4096  # and not the 420 that were written


@pytest.mark.parametrize("tasks", [False, True], ids=["sync", "asyncio"])
def test_coordinators_of_short_lives_do_their_share_of_moving_the_log(
    connect: Callable[..., Coordinator], path: Path, monkeypatch: pytest.MonkeyPatch, tasks: bool
) -> None:
    """While somebody else has the file open, nobody else would ever do it, and the log would grow."""
    moved: list[Path] = []
    for module in (wires, aio_wire):
        monkeypatch.setattr(module, "CHECKPOINT_EVERY_COUNT", 8)
        monkeypatch.setattr(module, "checkpoint", moved.append)
    connect()

    async def live_briefly() -> None:
        async with holdfast.aio.connect(f"sqlite://{path}") as locks:
            assert await (await locks.lock("a").acquire()).release()

    for _ in range(100):  # each has two chances in eight
        if tasks:
            asyncio.run(live_briefly())
        else:
            with holdfast.connect(f"sqlite://{path}") as locks:
                assert locks.lock("a").acquire().release()
    assert moved


def test_a_log_that_cannot_be_moved_troubles_nobody(
    path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The file is gone: that is for the next request to tell. Nothing is made in its place."""
    monkeypatch.setattr(wires, "CHECKPOINT_EVERY_COUNT", 1)
    monkeypatch.setattr(aio_wire, "CHECKPOINT_EVERY_COUNT", 1)
    folder = path.parent / "gone"
    locks = holdfast.connect(f"sqlite://{folder}/locks.db")
    (folder / "locks.db").unlink()
    assert locks.lock("a").acquire().release()
    eventually(lambda: not any(each.name == "holdfast-checkpoint" for each in threading.enumerate()), "the checkpoints")
    assert not (folder / "locks.db").exists()
    locks.close()

    async def in_a_loop() -> None:
        async with holdfast.aio.connect(f"sqlite://{folder}/locks.db") as tasks:
            shutil.rmtree(folder)
            assert await (await tasks.lock("a").acquire()).release()

    asyncio.run(in_a_loop())
    assert "Traceback" not in capfd.readouterr().err


def test_a_path_may_have_any_bytes(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff \xfe?#%.db"
    with holdfast.connect("sqlite://" + quote(path)) as locks, locks.lock("a"):
        assert os.path.exists(path)
        with holdfast.connect(locks.url) as same:
            assert same.lock("a").try_acquire() is None


def test_nobody_else_can_reach_the_wake_ups(connect: Callable[..., Coordinator], path: Path) -> None:
    locks = connect()
    with locks.lock("a"):
        thread, got = in_thread(connect(), "a")
        eventually(lambda: waiters(locks, "a") == 1, "the waiter")
        folder = wakeup_socket.folders_for(path)[0]
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert len(list(folder.iterdir())) == 1
    thread.join(20)
    assert got[0].release()


def test_a_forged_wake_up_grants_nothing(connect: Callable[..., Coordinator], path: Path) -> None:
    """A datagram with an old token, or to nobody: the waiter goes on waiting."""
    locks, other = connect(), connect()
    old = locks.lock("a").acquire()
    old.release()
    holder = locks.lock("a").acquire()
    thread, got = in_thread(other, "a")
    eventually(lambda: waiters(locks, "a") == 1, "the waiter")
    [view] = locks.survey("a")
    [box] = wakeup_socket.folders_for(path)[0].iterdir()
    postman = wakeup_socket.Notifier([box.parent])
    for token in (0, 1, old.token):
        assert postman.send(box.name, view.waiters[0].owner, token)
        assert postman.send(box.name, "somebody-else", token)
    postman.close()
    time.sleep(0.05)
    assert not got
    assert holder.release()
    thread.join(20)
    assert got[0].token > holder.token
    assert got[0].release()


def test_a_waiter_whose_socket_is_gone_is_passed_over_at_once(connect: Callable[..., Coordinator], path: Path) -> None:
    """As after a crash: the next in line does not wait for the dead one's patience."""
    locks = connect()
    holder = locks.lock("a").acquire()
    in_thread(connect(), "a", ttl=300)
    eventually(lambda: waiters(locks, "a") == 1, "the first waiter")
    [box] = wakeup_socket.folders_for(path)[0].iterdir()
    thread, got = in_thread(connect(), "a")
    eventually(lambda: waiters(locks, "a") == 2, "the second waiter")
    die(box)
    assert holder.release()
    thread.join(20)
    assert got
    assert got[0].release()


def test_a_busy_file_while_the_gone_are_taken_out_does_not_repeat_the_release(
    connect: Callable[..., Coordinator], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release was done by then; repeated, it would find nothing to release and call the lease lost."""
    locks = connect()
    holder = locks.lock("a").acquire()
    in_thread(connect(), "a", ttl=300)
    eventually(lambda: waiters(locks, "a") == 1, "the waiter")
    [box] = wakeup_socket.folders_for(path)[0].iterdir()
    die(box)
    whole, busy = store.SQLiteStore.take_out, [True, True]

    def take_out(self: store.SQLiteStore, *request: Any) -> Any:
        if busy and busy.pop():
            raise file.Busy
        return whole(self, *request)

    monkeypatch.setattr(store.SQLiteStore, "take_out", take_out)
    assert holder.release()
    assert not busy
    assert waiters(locks, "a") == 0
    assert locks.lock("a", timeout=0).acquire().release()


def test_whoever_was_evicted_from_the_seat_learns_why_after_others_have_handed_over(
    connect: Callable[..., Coordinator],
) -> None:
    """A hand-over moves the heir onto the seat, unless the seat still has something to tell."""
    locks = connect()
    evicted = locks.lock("a").acquire()
    first, got_first = in_thread(connect(), "a")
    eventually(lambda: waiters(locks, "a") == 1, "the first waiter")
    second, got_second = in_thread(connect(), "a")
    eventually(lambda: waiters(locks, "a") == 2, "the second waiter")
    assert locks.evict("a", evicted.token)
    first.join(20)
    assert got_first[0].release()
    second.join(20)
    with pytest.raises(holdfast.LeaseLost, match="evicted"):
        evicted.renew()
    assert got_second[0].release()


def test_a_lost_wake_up_costs_a_moment(connect: Callable[..., Coordinator], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeup_socket.Notifier, "send", lambda *_: True)
    locks = connect()
    holder = locks.lock("a").acquire()
    thread, got = in_thread(connect(), "a", ttl=1.0)
    eventually(lambda: waiters(locks, "a") == 1, "the waiter")
    assert holder.release()
    thread.join(20)
    assert got[0].token > holder.token
    got[0].release()


def test_without_sockets_it_looks_instead(connect: Callable[..., Coordinator], monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*args: object, **options: object) -> wakeup_socket.WakeupSocket:
        raise OSError("no sockets here")

    monkeypatch.setattr(wakeup_socket.WakeupSocket, "beside", none)
    locks = connect()
    holder = locks.lock("a").acquire()
    thread, got = in_thread(connect(), "a", ttl=5.0)
    eventually(lambda: waiters(locks, "a") == 1, "the waiter")
    assert holder.release()
    thread.join(20)
    assert got[0].token > holder.token
    got[0].release()


def test_a_long_path_has_its_sockets_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / ("deep/" * 20)
    folder.mkdir(parents=True)
    with holdfast.connect(f"sqlite://{folder}/locks.db") as locks, holdfast.connect(locks.url) as other:
        holder = locks.lock("a").acquire()
        thread, got = in_thread(other, "a")
        eventually(lambda: waiters(locks, "a") == 1, "the waiter")
        assert holder.release()
        thread.join(20)
        assert got[0].release()
        [boxes] = wakeup_socket.folders_for(folder / "locks.db")
        assert len(os.fsencode(boxes)) < wakeup_socket.MAX_PATH_BYTES
    assert not boxes.exists(), "nobody would ever remove it"


def test_what_is_done_leaves_nothing_beside_the_file(path: Path) -> None:
    with holdfast.connect(f"sqlite://{path}") as locks, holdfast.connect(f"sqlite://{path}") as other:
        for _ in range(3):
            holder = locks.lock("a").acquire()
            thread, got = in_thread(other, "a")
            eventually(lambda: waiters(locks, "a") == 1, "the waiter")
            assert holder.release()
            thread.join(20)
            assert got[0].release()
    folder = wakeup_socket.folders_for(path)[0]
    assert not folder.exists() or list(folder.iterdir()) == []
