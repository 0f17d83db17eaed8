"""Wake-ups of the embedded engine: what a postman knows of the boxes that it has links to."""

from __future__ import annotations

from pathlib import Path

from holdfast.backends.queue_backend import Push
from holdfast.backends.sqlite.wakeup_socket import MOST_LINKS_COUNT, Notifier, WakeupSocket, sweep


def test_it_finds_out_who_has_gone_since_its_last_message(tmp_path: Path) -> None:
    postman, box = Notifier([tmp_path]), WakeupSocket(tmp_path)
    for token in (1, 2, 3):
        assert postman.send(box.name, "o", token)
    assert [box.receive(5.0) for _ in range(3)] == [("o", Push(token)) for token in (1, 2, 3)]
    box.close()
    assert not postman.send(box.name, "o", 4)
    assert postman.send(box.name, "o", 5), "a socket that is missing proves nothing"
    postman.close()


def test_a_box_whose_owner_died_is_swept_away(tmp_path: Path) -> None:
    postman, box = Notifier([tmp_path]), WakeupSocket(tmp_path)
    assert postman.send(box.name, "o", 1)
    box.disown()  # the socket is gone, its path is left, as after a crash
    for token in (2, 3):  # more than one may wait behind it
        assert not postman.send(box.name, "o", token)
    postman.close()
    alive = WakeupSocket(tmp_path)
    sweep(tmp_path)
    assert Path(box.path).exists(), "too young"
    sweep(tmp_path, older_than=-1)
    assert not Path(box.path).exists()
    assert Path(alive.path).exists()
    alive.close()


def test_it_keeps_few_links_and_leaves_none_open(tmp_path: Path) -> None:
    postman = Notifier([tmp_path])
    boxes = [WakeupSocket(tmp_path) for _ in range(MOST_LINKS_COUNT + 5)]
    for token in (1, 2):
        for box in boxes:
            assert postman.send(box.name, "o", token)
            assert box.receive(5.0) == ("o", Push(token))
    links = list(postman._links.values())
    assert len(links) == MOST_LINKS_COUNT
    postman.close()
    assert all(link.fileno() == -1 for link in links)
    for box in boxes:
        box.close()


def test_a_box_that_is_elsewhere_for_its_owner_is_found(tmp_path: Path) -> None:
    """Its path for the lock file was too long, so its socket is in the temporary folder; ours is not."""
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    postman, box = Notifier([tmp_path, other]), WakeupSocket(other)
    assert postman.send(box.name, "o", 1)
    assert box.receive(5.0) == ("o", Push(1))
    box.disown()
    assert not postman.send(box.name, "o", 2)
    other.chmod(0o777)  # anybody may have put a dead socket there
    assert postman.send(box.name, "o", 3)
    postman.close()


def test_a_full_box_is_no_reason_to_believe_that_nobody_is_there(tmp_path: Path) -> None:
    """Its owner will look by itself; what has arrived is good."""
    postman, box = Notifier([tmp_path]), WakeupSocket(tmp_path)
    for token in range(1, 2000):
        assert postman.send(box.name, "o", token)
    assert box.receive(5.0) == ("o", Push(1))
    postman.close()
    box.close()
