"""What goes wrong at a fenced file is said in words, with what to do; and nothing is changed by it."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.errors import BackendUnavailable, FenceRejected, Misconfigured, OutcomeUnknown
from holdfast.fenced import FencedFile
from holdfast.fenced.file.sidecar import locked
from tests.fenced.connections import files


@pytest.mark.parametrize(
    "damage",
    [
        lambda record: record[:-1],
        lambda record: record + b"\n",
        lambda record: record.replace(b"7", b"8"),
        lambda record: b"\0" * len(record),
        lambda record: b"7\n",
    ],
    ids=["short", "long", "digit", "zeros", "foreign"],
)
def test_a_damaged_sidecar_is_named_and_nothing_is_lost(tmp_path: Path, damage: object) -> None:
    assert callable(damage)
    file = FencedFile(tmp_path / "data")
    claim = file.claim(7)
    claim.write_bytes(b"kept")
    sidecar = tmp_path / "data.fence"
    sidecar.write_bytes(damage(sidecar.read_bytes()))
    before = files(tmp_path)
    for use in (lambda: file.claim(9), lambda: claim.write_bytes(b"new"), file.mark):
        with pytest.raises(Misconfigured, match=r"data\.fence.* is damaged"):
            use()
    assert files(tmp_path) == before


def test_an_empty_sidecar_is_one_that_was_never_claimed(tmp_path: Path) -> None:
    """A process was killed between creating it and its first record."""
    (tmp_path / "data.fence").touch()
    file = FencedFile(tmp_path / "data")
    assert file.mark() is None
    file.claim(1)
    assert file.mark() == 1


def test_a_removed_sidecar_is_not_taken_for_a_yes(tmp_path: Path) -> None:
    claim = FencedFile(tmp_path / "data").claim(7)
    claim.write_bytes(b"kept")
    (tmp_path / "data.fence").unlink()
    with pytest.raises(FenceRejected) as refusal:
        claim.write_bytes(b"new")
    assert refusal.value.mark is None
    assert files(tmp_path) == {"data": b"kept"}


@pytest.mark.parametrize("timeout", [0, 0.01])
def test_a_section_that_does_not_end_is_reported_in_time(tmp_path: Path, timeout: float) -> None:
    file = FencedFile(tmp_path / "data", timeout=timeout)
    claim = file.claim(7)
    with locked(file.path + ".fence", create=False, timeout=None, durable=False):
        for use in (lambda: file.claim(9), lambda: claim.write_bytes(b"new"), file.mark):
            with pytest.raises(BackendUnavailable, match="not free in time"):
                use()
    claim.write_bytes(b"new")


@pytest.mark.parametrize("timeout", [None, 60.0])
def test_a_claim_waits_for_a_section_to_end(
    tmp_path: Path, timeout: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = FencedFile(tmp_path / "data", timeout=timeout)
    section = ExitStack()
    section.enter_context(locked(file.path + ".fence", create=True, timeout=None, durable=False))
    flock = fcntl.flock
    waits: list[str] = []

    def wait(how: str) -> None:
        waits.append(how)
        section.close()

    def kernel(descriptor: int, how: int) -> None:
        if how == fcntl.LOCK_EX:
            wait("in the kernel")
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", kernel)
    monkeypatch.setattr(time, "sleep", lambda _: wait("by asking again"))
    file.claim(9)
    assert waits == ["in the kernel" if timeout is None else "by asking again"]
    monkeypatch.undo()
    assert file.mark() == 9


FORKED = """
import os, sys
from holdfast.fenced import FencedFile
from holdfast.fenced.file.sidecar import locked

file = FencedFile(sys.argv[1], timeout=0)
until_the_end, end = os.pipe()
with locked(file.path + ".fence", create=True, timeout=0, durable=False):
    if not os.fork():  # as another thread might, at the worst moment; the child inherits the open sidecar
        os.close(end)
        os.read(until_the_end, 1)
        os._exit(0)
file.claim(1)
os.close(end)
os.wait()
"""


def test_a_child_forked_inside_a_section_does_not_keep_it_locked(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FORKED, str(tmp_path / "data")], timeout=60, check=True)


def test_without_flock_there_is_no_fence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as on Windows
    with pytest.raises(Misconfigured, match="flock"):
        FencedFile(tmp_path / "data")


def test_a_file_system_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(descriptor: int, how: int) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(Misconfigured, match="does not lock files"):
        FencedFile(tmp_path / "data").claim(1)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_version_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    claim = FencedFile(tmp_path / "data").claim(7)
    claim.write_bytes(b"kept")
    before = files(tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, step, full)
        with pytest.raises(OSError, match="No space left"):
            claim.write_bytes(b"new")
    assert files(tmp_path) == before
    claim.write_bytes(b"new")


def test_an_unflushed_folder_is_an_unknown_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = FencedFile(tmp_path / "data").claim(7)
    calls: list[int] = []

    def second_fails(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", second_fails)
    with pytest.raises(OutcomeUnknown, match="power failure"):
        claim.write_bytes(b"new")
    assert claim.read_bytes() == b"new"


def test_data_of_a_wrong_type_changes_nothing(tmp_path: Path) -> None:
    claim = FencedFile(tmp_path / "data").claim(7)
    claim.write_bytes(b"kept")
    before = files(tmp_path)
    with pytest.raises(TypeError):
        claim.write_bytes("text")  # type: ignore[arg-type]
    assert files(tmp_path) == before


def test_a_planted_link_is_neither_followed_nor_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"kept")
    claim = FencedFile(tmp_path / "data").claim(7)
    (tmp_path / "data.fence.new").symlink_to(victim)
    claim.write_bytes(b"new")
    (tmp_path / "more.fence").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        FencedFile(tmp_path / "more").claim(7)
    assert victim.read_bytes() == b"kept"


@pytest.mark.parametrize("name", ["data.fence", "data.fence.new"])
def test_the_fence_of_a_file_cannot_itself_be_fenced(tmp_path: Path, name: str) -> None:
    with pytest.raises(Misconfigured, match="another file's fence"):
        FencedFile(tmp_path / name)


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_folder_cannot_be_fenced(path: str) -> None:
    with pytest.raises(Misconfigured, match="folder"):
        FencedFile(path)


@pytest.mark.parametrize("timeout", [-1.0, float("nan")])
def test_a_bad_timeout_is_refused(tmp_path: Path, timeout: float) -> None:
    with pytest.raises(Misconfigured, match="timeout"):
        FencedFile(tmp_path / "data", timeout=timeout)
