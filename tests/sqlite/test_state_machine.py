"""TRAPS 51: one lock file serves one machine, and whose it is rests on nothing that is rounded or guessed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
import holdfast.aio
from holdfast import BackendUnavailable, Misconfigured, clock
from holdfast.backends.sqlite import file, machine, store
from holdfast.backends.sqlite.machine import Machine, file_system

Pretend = Callable[[str, str], None]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/locks.db"


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Pretend:
    """Whoever connects from now on is on this machine, at this start of it."""
    return lambda name, boot: monkeypatch.setattr(file, "this_machine", lambda: Machine(name, boot))


@pytest.mark.parametrize("other", [("b", "2"), ("", "2")], ids=["foreign", "nameless"])
def test_another_machine_is_refused_and_the_holder_keeps_its_lock(
    url: str, pretend: Pretend, other: tuple[str, str]
) -> None:
    async def connect() -> None:
        await holdfast.aio.connect(url)

    pretend("a", "1")
    with holdfast.connect(url) as locks, locks.lock("a") as lease:
        pretend(*other)
        with pytest.raises(Misconfigured, match="another machine"):
            holdfast.connect(url)
        with pytest.raises(Misconfigured, match="another machine"):
            asyncio.run(connect())
        lease.renew()
        pretend("a", "1")
        with holdfast.connect(url) as beside:
            assert beside.lock("a").try_acquire() is None


@pytest.mark.parametrize(
    ("before", "after"), [(("a", "1"), ("a", "2")), (("", "1"), ("", "2")), (("a", ""), ("a", "2"))]
)
def test_another_start_of_the_same_machine_finds_nobody(
    url: str, pretend: Pretend, before: tuple[str, str], after: tuple[str, str]
) -> None:
    pretend(*before)
    with holdfast.connect(url) as locks:
        lease = locks.lock("a").acquire()
        pretend(*after)
        with holdfast.connect(url) as restarted:
            successor = restarted.lock("a", timeout=0).acquire()
            assert successor.token > lease.token


def test_containers_of_one_kernel_are_one_machine(url: str, pretend: Pretend) -> None:
    pretend("a", "1")
    with holdfast.connect(url) as locks, locks.lock("a"):
        pretend("b", "1")
        with holdfast.connect(url) as beside:
            assert beside.lock("a").try_acquire() is None
            pretend("a", "1")
            holdfast.connect(url).close()


def test_where_the_start_is_not_told_only_a_clock_that_went_back_proves_another(
    url: str, pretend: Pretend, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = clock.now

    def shift(seconds: float) -> None:
        for module in (file, store):
            monkeypatch.setattr(module, "now", lambda: real() + seconds)

    pretend("", "")
    shift(1000)
    with holdfast.connect(url) as locks:
        locks.lock("a", ttl=3600).acquire()
        monkeypatch.setattr(clock, "calendar_us", lambda: 0)  # a correction of the calendar means nothing
        with holdfast.connect(url) as beside:
            assert beside.lock("a").try_acquire() is None
        shift(0)
        with holdfast.connect(url) as restarted:
            assert restarted.lock("a", timeout=0).acquire().release()


def test_a_file_that_another_start_took_over_is_noticed(
    url: str, pretend: Pretend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two machines with one id: a clone. The one that loses the file is told, and grants nothing more."""
    pretend("a", "1")
    with holdfast.connect(url, request_timeout=0.5) as locks:
        lease = locks.lock("a", ttl=20).acquire()
        pretend("a", "2")
        with holdfast.connect(url):
            real = clock.now
            for module in (file, store):
                monkeypatch.setattr(module, "now", lambda: real() + 5.0)
            with pytest.raises(BackendUnavailable, match="taken over"):
                lease.renew()
            with pytest.raises(BackendUnavailable, match="taken over"):
                locks.lock("b").try_acquire()


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "ceph"])
def test_a_network_file_system_is_refused(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:40 / {tmp_path} rw - {kind} server:/ rw\n")
    monkeypatch.setattr(machine, "MOUNTS", str(mounts))
    with pytest.raises(Misconfigured, match="network file system"):
        holdfast.connect(url)
    assert not list(tmp_path.glob("locks.db*"))


def test_the_file_system_of_a_path_is_that_of_its_last_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
        "23 22 0:40 / /home rw - nfs4 server:/ rw\n"
        "24 23 8:2 / /home rw - xfs /dev/sdb rw\n"
        "25 22 0:41 / /mnt/with\\040space rw - cifs //server/x rw\n"
        "broken line\n"
    )
    monkeypatch.setattr(machine, "MOUNTS", str(mounts))
    assert file_system("/home/me/locks.db") == "xfs"
    assert file_system("/homes/locks.db") == "ext4"
    assert file_system("/mnt/with space/locks.db") == "cifs"
    monkeypatch.setattr(machine, "MOUNTS", str(tmp_path / "none"))
    assert file_system("/home/me/locks.db") == ""
