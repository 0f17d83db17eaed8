"""A claim and a write are on the disk before they return, unless the user does without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.fenced import FencedFile


@pytest.fixture
def flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is flushed, in order, as they were at that moment."""
    names: list[str] = []

    def fsync(descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        entries = {os.stat(path).st_ino: path.name for path in tmp_path.iterdir()}
        names.append(entries.get(inode, "the folder" if inode == os.stat(tmp_path).st_ino else "?"))

    monkeypatch.setattr(os, "fsync", fsync)
    return names


def test_a_claim_is_flushed_and_its_folder_when_the_sidecar_is_new(tmp_path: Path, flushed: list[str]) -> None:
    FencedFile(tmp_path / "data").claim(1)
    assert flushed == ["data.fence", "the folder"]
    FencedFile(tmp_path / "data").claim(2)
    assert flushed[2:] == ["data.fence"]
    FencedFile(tmp_path / "data").claim(2)
    assert flushed[3:] == []  # nothing was changed


def test_a_write_is_flushed_before_it_is_moved_into_place(tmp_path: Path, flushed: list[str]) -> None:
    claim = FencedFile(tmp_path / "data").claim(1)
    flushed.clear()
    claim.write_bytes(b"1")
    assert flushed == ["data.fence.new", "the folder"]


def test_nothing_is_flushed_if_the_user_does_without(tmp_path: Path, flushed: list[str]) -> None:
    FencedFile(tmp_path / "data", durable=False).claim(1).write_bytes(b"1")
    assert flushed == []
