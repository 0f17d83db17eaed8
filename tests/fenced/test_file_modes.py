"""The next version of a file is never open to more people than the one before, not even for a moment."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.fenced import FencedFile


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_until_it_has_the_old_permissions_only_its_writer_can_open_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(mode)
    seen: list[tuple[int, int]] = []
    fchmod = os.fchmod

    def watched(descriptor: int, wanted: int) -> None:
        new = os.fstat(descriptor)
        seen.append((stat.S_IMODE(new.st_mode), new.st_size))
        fchmod(descriptor, wanted)

    monkeypatch.setattr(os, "fchmod", watched)
    FencedFile(path).claim(1).write_bytes(b"new")
    assert seen == [(0o600, 0)]
    assert mode_of(path) == mode


def test_a_new_file_has_the_permissions_that_new_files_have(tmp_path: Path) -> None:
    FencedFile(tmp_path / "new").claim(1).write_bytes(b"new")
    assert mode_of(tmp_path / "new") == 0o644


def test_a_group_that_cannot_be_kept_does_not_hand_its_rights_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(0o640)

    def refused(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refused)
    FencedFile(path).claim(1).write_bytes(b"new")
    assert mode_of(path) == 0o600
