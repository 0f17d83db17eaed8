"""Tokens strictly grow per name, whatever the nodes, the clients and their calendars do; with real processes."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading

import pytest

import holdfast
from holdfast import clock
from holdfast.backends.redlock.engine import RedlockEngine
from holdfast.errors import NotAcquired
from holdfast.sync.coordinator import Coordinator
from tests.redlock.quorums import Servers, eventually, quorum

CLIENT = """
import json, sys, time
import holdfast
from holdfast import clock
from holdfast.errors import BackendUnavailable, NotAcquired
from holdfast.backends.redlock.engine import RedlockEngine
from holdfast.sync.coordinator import Coordinator

url, ahead, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
engine = RedlockEngine(url, "holdfast", 5.0, lambda: clock.calendar_us() + ahead)
end = time.monotonic() + seconds
with Coordinator(engine, 2.0, 2.0, None) as locks:
    while time.monotonic() < end:
        began = time.monotonic_ns()
        try:
            lease = locks.lock("a").acquire()
        except (BackendUnavailable, NotAcquired):
            continue
        got = time.monotonic_ns()
        held = lease.release()
        print(json.dumps([began, got, time.monotonic_ns(), lease.token, held]), flush=True)
"""


def coordinator(servers: Servers, namespace: str, ahead: float) -> Coordinator:
    """A client whose calendar is wrong by so many seconds."""
    engine = RedlockEngine(servers.url(), namespace, 5.0, lambda: clock.calendar_us() + int(ahead * 1e6))
    return Coordinator(engine, 30.0, 5.0, None)


def test_wrong_calendars_only_cost_a_second_round(five: Servers, namespace: str) -> None:
    aheads = [0.0, 3600.0, -3600.0, 40 * 365 * 86400.0, -30 * 365 * 86400.0, 7.0]
    clients = [coordinator(five, namespace, ahead) for ahead in aheads]
    try:
        tokens = []
        for turn in range(30):
            with clients[turn % len(clients)].lock("a") as lease:
                tokens.append(lease.token)
        assert tokens == sorted(set(tokens))
    finally:
        for client in clients:
            client.close()


def test_real_processes_with_wrong_calendars_while_nodes_stop_restart_and_forget() -> None:
    """Grants that did not overlap in time have tokens in the same order (real-time order), and none comes twice."""
    chance = random.Random(11)
    with quorum(5) as servers:
        with holdfast.connect(servers.url(longest_ttl=2), ttl=2) as locks:
            locks.lock("a").acquire(timeout=10).release()
        url = servers.url(longest_ttl=2)
        crowd = [
            subprocess.Popen(
                [sys.executable, "-c", CLIENT, url, str(int(ahead * 1e6)), "12"], stdout=subprocess.PIPE, text=True
            )
            for ahead in (0.0, 100.0, -86400.0)
        ]
        stop = threading.Event()

        def trouble() -> None:
            while not stop.wait(0.2):
                node = chance.choice(servers.nodes)
                if chance.random() < 0.7:
                    node.pause()
                    stop.wait(chance.random() * 0.4)
                    node.resume()
                elif servers.memories().count("+") == 5:  # one at a time may forget
                    node.stop()
                    stop.wait(0.1)
                    node.start()

        worker = threading.Thread(target=trouble)
        worker.start()
        try:
            logs = [json.loads(line) for each in crowd for line in each.communicate(timeout=60)[0].splitlines()]
        finally:
            stop.set()
            worker.join()
        assert all(each.returncode == 0 for each in crowd)
    assert len(logs) > 50
    assert len({token for *_, token, _ in logs}) == len(logs)
    logs.sort(key=lambda log: log[1])
    highest, ended = 0, [(got, token) for _, got, _, token, _ in logs]
    for began, _, _, token, _ in sorted(logs):
        while ended and ended[0][0] < began:
            highest = max(highest, ended.pop(0)[1])
        assert token > highest, f"{token} was granted to a take that began after {highest} was granted"


def test_extension_keeps_the_token(five: Servers, namespace: str) -> None:
    with holdfast.connect(five.url(), namespace=namespace) as locks:
        lease = locks.lock("a", ttl=1).acquire(timeout=5)
        token = lease.token
        for _ in range(3):
            lease.renew()
        assert lease.token == token
        [view] = locks.survey("a")
        assert [claim.token for claim in view.holders] == [token]
        assert lease.release()


def test_release_reaches_every_node(five: Servers, namespace: str) -> None:
    with holdfast.connect(five.url(), namespace=namespace) as locks:
        lease = locks.lock("a").acquire(timeout=5)
        eventually(lambda: five.holders("a", namespace) == [lease.owner] * 5, "all hold it")
        assert lease.release()
        eventually(lambda: five.holders("a", namespace) == [None] * 5, "none holds it")


def test_held_is_not_the_same_as_unavailable(five: Servers, namespace: str) -> None:
    with holdfast.connect(five.url(), namespace=namespace) as locks, locks.lock("a", timeout=5):
        with pytest.raises(NotAcquired):
            locks.lock("a").acquire(timeout=0.05)
