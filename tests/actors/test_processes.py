"""Workers in processes of their own, on SQLite: killed at any moment, stopped until they are zombies."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import holdfast
from holdfast.recipes.actor_record import ActorRecord
from holdfast.recipes.records import records_of

PROGRAM = """
import os, sys, time
import holdfast

url, pause, mark, tries = sys.argv[1], float(sys.argv[2]), sys.argv[3], int(sys.argv[4])

def handle(actor, message):
    with open(mark, "a") as file:
        file.write(f"{os.getpid()} {actor.key} {message}\\n")
    time.sleep(pause)
    if message == "end":
        os._exit(7)
    actor.state = [*(actor.state or []), message]
    return os.getpid()

with holdfast.connect(url) as locks:
    locks.actors("lists", handle, ttl=1.0, tries=tries).run()
"""
LONG_S = 100.0


@contextmanager
def worker(url: str, pause: float, mark: Path, tries: int = 50) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, url, str(pause), str(mark), str(tries)])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until_empty(lists: holdfast.ActorSystem, keys: str) -> None:
    end = time.monotonic() + LONG_S
    while any(view is None or view.inbox for view in map(lists.look, keys)):
        assert time.monotonic() < end, "the inboxes should be empty by now"
        time.sleep(0.05)


def state_of(lists: holdfast.ActorSystem, key: str) -> list[int]:
    view = lists.look(key)
    assert view is not None
    return list(view.state)


def test_killed_workers_neither_lose_nor_double_an_effect(tmp_path: Path) -> None:
    url, mark, chance = f"sqlite:///{tmp_path}/locks.db", tmp_path / "tries", random.Random(7)
    with holdfast.connect(url) as locks:
        lists = locks.actors("lists")
        for number in range(40):
            for key in "abc":
                lists.tell(key, number)
        for _ in range(5):
            with worker(url, 0.01, mark), worker(url, 0.01, mark):
                seen = len(mark.read_text()) if mark.exists() else 0
                end = time.monotonic() + LONG_S
                while not mark.exists() or len(mark.read_text()) < seen + 60:  # they are at it
                    assert time.monotonic() < end
                    if not any(view is None or view.inbox for view in map(lists.look, "abc")):
                        break
                    time.sleep(chance.random() * 0.02)
        with worker(url, 0.0, mark):
            wait_until_empty(lists, "abc")
            assert [state_of(lists, key) for key in "abc"] == [list(range(40))] * 3
            pid = lists.ask("a", -1, timeout=LONG_S)
        assert pid != os.getpid()
        assert len(mark.read_text().splitlines()) >= 120
        assert lists.dead_letters() == []


def test_a_message_that_ends_its_process_is_put_out_of_the_way_of_its_neighbours(tmp_path: Path) -> None:
    url, mark = f"sqlite:///{tmp_path}/locks.db", tmp_path / "tries"
    with holdfast.connect(url) as locks:
        lists = locks.actors("lists")
        for number in range(40):
            lists.tell("a", number if number != 20 else "end")
        end = time.monotonic() + LONG_S
        while (view := lists.look("a")) is None or view.inbox:
            with worker(url, 0.0, mark, tries=2) as process:
                while process.poll() is None and (view := lists.look("a")) is not None and view.inbox:
                    assert time.monotonic() < end, "the inbox should be empty by now"
                    time.sleep(0.02)
        assert state_of(lists, "a") == [number for number in range(40) if number != 20]
        [letter] = lists.dead_letters()
        assert (letter.message, letter.tries) == ("end", 2)
        tries = [line.split()[-1] for line in mark.read_text().splitlines()]
        assert 2 <= tries.count("end") <= 3
        assert max(tries.count(str(number)) for number in range(40)) <= 3


def test_a_stopped_worker_that_goes_on_changes_nothing(tmp_path: Path) -> None:
    url, mark = f"sqlite:///{tmp_path}/locks.db", tmp_path / "tries"
    with holdfast.connect(url) as locks:
        lists = locks.actors("lists")
        with worker(url, 0.3, mark) as zombie:
            for number in range(3):
                lists.tell("a", number)
            end = time.monotonic() + LONG_S
            while not mark.exists():
                assert time.monotonic() < end
                time.sleep(0.005)
            zombie.send_signal(signal.SIGSTOP)  # in the middle of a message, mostly
            with worker(url, 0.0, mark):
                wait_until_empty(lists, "a")
                zombie.send_signal(signal.SIGCONT)
                assert lists.ask("a", 3, timeout=LONG_S) > 0
                wait_until_empty(lists, "a")
                assert state_of(lists, "a") == [0, 1, 2, 3]


def test_nothing_is_left_behind_but_the_state(tmp_path: Path) -> None:
    def handle(actor: holdfast.Actor, message: int | None) -> int | None:
        actor.state = message
        return message

    with holdfast.connect(f"sqlite:///{tmp_path}/locks.db") as locks:
        with locks.actors("values", handle) as values:
            for key in "abc":
                values.ask(key, 1, timeout=LONG_S)
            values.ask("c", None, timeout=LONG_S)
        assert locks.survey() == []
        records = locks._run(records_of(locks._engine.backend, "values").list_records("actor", "", 100))
        left = {record.key: record.data for record in records if record.data != b"0"}
        assert sorted(left) == ["actor:values:a", "actor:values:b", "actor:values:c"]  # c for ten minutes, for its ids
        kept = [ActorRecord.decode(record) for record in records if record.key in left]
        assert [(each.waiting, each.outcomes) for each in kept] == [(0, "{}")] * 3  # neither messages nor answers
