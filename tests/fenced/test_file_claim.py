"""A fenced file is changed by its newest holder only, and only as a whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.errors import FenceRejected, Misconfigured
from holdfast.fenced import FencedFile
from tests.fenced.connections import files


@pytest.mark.parametrize("durable", [True, False])
def test_a_holder_reads_what_the_last_one_wrote(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "data"
    for token in (1, 2, 2, 9):
        with FencedFile(path, durable=durable).claim(token) as file:
            number = int(file.read_text() or "0")
            file.write_text(str(number + 1))
            assert file.read_bytes() == b"%d" % (number + 1)
            file.write_bytes(b"%d" % (number + 2))
    assert path.read_bytes() == b"8"
    assert sorted(files(tmp_path)) == ["data", "data.fence"]


def test_a_missing_file_is_not_an_empty_one(tmp_path: Path) -> None:
    with FencedFile(tmp_path / "data").claim(1) as file:
        assert file.read_bytes() is None
        assert file.read_text() is None
        file.write_bytes(b"")
        assert file.read_bytes() == b""
        assert file.read_text() == ""


def test_content_and_line_ends_are_kept_as_they_are(tmp_path: Path) -> None:
    with FencedFile(tmp_path / "data").claim(1) as file:
        for data in (b"\r\n\n\0\xff", bytearray(b"ab"), memoryview(b"c" * 1_000_000)):
            file.write_bytes(data)
            assert file.read_bytes() == bytes(data)
        file.write_text("ä\r\nö\n", encoding="latin-1")
        assert file.read_text(encoding="latin-1") == "ä\r\nö\n"


def test_a_refused_claim_changes_nothing(tmp_path: Path) -> None:
    file = FencedFile(tmp_path / "data")
    file.claim(34).write_bytes(b"new")
    before = files(tmp_path)
    with pytest.raises(FenceRejected) as refusal:
        file.claim(33)
    assert (refusal.value.resource, refusal.value.token, refusal.value.mark) == (file.path, 33, 34)
    assert files(tmp_path) == before


def test_a_refused_write_changes_nothing(tmp_path: Path) -> None:
    file = FencedFile(tmp_path / "data")
    stale = file.claim(33)
    stale.write_bytes(b"old")
    file.claim(34)
    before = files(tmp_path)
    inode = os.stat(file.path).st_ino
    with pytest.raises(FenceRejected) as refusal:
        stale.write_bytes(b"late")
    assert (refusal.value.token, refusal.value.mark) == (33, 34)
    assert files(tmp_path) == before
    assert os.stat(file.path).st_ino == inode
    assert stale.read_bytes() == b"old"  # reading harms nobody


def test_the_mark_rises_with_the_claim_and_not_with_the_write(tmp_path: Path) -> None:
    file = FencedFile(tmp_path / "data")
    assert file.mark() is None
    assert files(tmp_path) == {}
    file.claim(5)
    assert file.mark() == 5
    assert not os.path.exists(file.path)
    file.claim(2**63 - 1)
    assert file.mark() == 2**63 - 1


def test_a_reader_that_opened_the_old_version_keeps_it_whole(tmp_path: Path) -> None:
    file = FencedFile(tmp_path / "data")
    file.claim(1).write_bytes(b"old" * 1000)
    with open(file.path, "rb") as reader:
        assert reader.read(3) == b"old"
        file.claim(2).write_bytes(b"new")
        assert reader.read() == b"old" * 999


def test_a_claim_ends_with_its_block(tmp_path: Path) -> None:
    with FencedFile(tmp_path / "data").claim(1) as file:
        file.write_bytes(b"1")
    for use in (file.read_bytes, file.read_text, lambda: file.write_bytes(b"2"), file.__enter__):
        with pytest.raises(Misconfigured, match="claim it again"):
            use()
    assert (tmp_path / "data").read_bytes() == b"1"


def test_all_names_of_a_file_lead_to_one_fence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "data")
    (tmp_path / "other").symlink_to(tmp_path / "folder", target_is_directory=True)
    FencedFile(tmp_path / "folder" / "data").claim(34).write_bytes(b"34")
    monkeypatch.chdir(tmp_path / "folder")
    for name in (tmp_path / "link", tmp_path / "other" / "data", "data", "../other/./data"):
        with pytest.raises(FenceRejected):
            FencedFile(name).claim(33)
        FencedFile(name).claim(34).write_bytes(str(name).encode())
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "data").read_bytes() == b"../other/./data"


def test_the_permissions_of_the_old_version_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"0")
    path.chmod(0o640)
    FencedFile(path).claim(1).write_bytes(b"1")
    assert path.stat().st_mode & 0o777 == 0o640


def test_the_owner_of_the_old_version_is_kept_where_the_system_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"0")
    monkeypatch.setattr(os, "stat", lambda name, **_: _with_owner(os.lstat(name), 1234))
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "fchown", lambda _, uid, gid: given.append((uid, gid)))
    FencedFile(path).claim(1).write_bytes(b"1")
    assert given == [(1234, 1234)]


def _with_owner(stat: os.stat_result, owner: int) -> os.stat_result:
    return os.stat_result((*stat[:4], owner, owner, *stat[6:10]))
