"""TRAPS 37 to 41 on MariaDB: how other lock libraries fail on a database, shown not to happen here."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

import holdfast
from holdfast.backends.mysql.session.codec import IDLE_S, SessionCodec
from holdfast.errors import Misconfigured, NotAcquired
from tests.mysql.house import connector, said
from tests.mysql.server import Server, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving({"log-bin": "log", "server-id": "1", "binlog-format": "MIXED"}) as server:
        server.execute("CREATE DATABASE traps")
        yield server


@pytest.fixture
def url(server: Server) -> str:
    return server.url("traps")


@pytest.fixture
def session_url(url: str) -> str:
    return url.replace("mysql:", "mysql+session:")


def connections(server: Server) -> int:
    return int(server.execute("SELECT COUNT(*) FROM information_schema.processlist WHERE db = 'traps'")[0][0])


def test_37_unrelated_names_do_not_share_a_user_lock() -> None:
    codec = SessionCodec("holdfast", "host", 1)
    assert len({codec.unlock(f"orders/{number}").values for number in range(100_000)}) == 100_000


def test_38_what_was_refused_is_not_held(session_url: str) -> None:
    """A lock that was granted just when its waiter gave up must not stay behind in the waiter's session."""
    with holdfast.connect(session_url, namespace="t38") as one, holdfast.connect(session_url, namespace="t38") as two:
        refused = granted = 0
        patience = 0.005  # moves to where both happen, however busy the machine is
        while refused < 10 or granted < 10:
            lease = one.lock("door").acquire(timeout=60)
            timer = threading.Timer(0.02, lease.release)
            timer.start()
            try:
                two.lock("door").acquire(timeout=patience).release()
                granted += 1
                patience *= 0.8
            except NotAcquired:
                refused += 1
                patience *= 1.25
            timer.join()
            assert not one.survey()
        with one.lock("door", timeout=0):
            pass


def test_39_connections_keep_themselves_alive(url: str) -> None:
    """A dead peer is noticed in seconds, not in the system's two hours."""
    connection = connector(url).dial()
    sock: socket.socket = connection.connection.connection._sock
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
    idle, every, count = (sock.getsockopt(socket.IPPROTO_TCP, option) for option in options)
    connection.close()
    assert 0 < idle + every * count <= 30


def test_39_the_server_notices_a_dead_holder(server: Server, session_url: str) -> None:
    """A session that says nothing is ended; a renewal says something, ten times as often."""
    with holdfast.connect(session_url, namespace="t39") as locks, locks.lock("door"):
        assert said(locks, b"SELECT @@wait_timeout") == [[b"%d" % IDLE_S]]
        assert IDLE_S <= 30


def test_39_a_forked_child_does_not_keep_a_dead_parents_lock(session_url: str) -> None:
    """The child closes the parent's socket at once, so the server sees the parent's end."""
    program = (
        "import os, sys, time, holdfast\n"
        "locks = holdfast.connect(sys.argv[1], namespace='t39'); lease = locks.lock('door').acquire()\n"
        "child = os.fork()\n"
        "if not child: time.sleep(600); os._exit(0)\n"
        "print(child, flush=True); input()\n"
    )
    words = [sys.executable, "-c", program, session_url]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            parent.kill()
            began = time.monotonic()
            with holdfast.connect(session_url, namespace="t39") as locks, locks.lock("door", timeout=25):
                os.kill(child, 0)  # it lives
                assert time.monotonic() < began + IDLE_S, "no silence was waited for"
        finally:
            os.kill(child, signal.SIGKILL)


def test_39_a_waiting_lock_keeps_no_connection_from_the_work(server: Server, url: str) -> None:
    """One connection serves all requests and another all waiters, so locks cannot use the work's connections up."""
    before = connections(server)
    with holdfast.connect(url, namespace="t39") as locks:
        holder = locks.lock("door").acquire()
        threads = [threading.Thread(target=lambda: locks.lock("door").acquire().release()) for _ in range(64)]
        for thread in threads:
            thread.start()
        while sum(len(view.waiters) for view in locks.survey("door")) < 64:
            pass
        assert connections(server) - before == 2
        holder.release()
        for thread in threads:
            thread.join(120)
        assert not locks.survey()


@pytest.mark.parametrize("scheme", ["mysql", "mysql+session"])
def test_40_names_differ_in_case_in_length_and_in_trailing_blanks(url: str, scheme: str) -> None:
    """A user lock has 64 characters and ignores case, and so do most collations: names are bytes here."""
    url = url.replace("mysql:", f"{scheme}:")
    long = "x" * 500
    names = [
        "Door",
        "door",
        "door ",
        "döor",
        "doör",
        long + "1",
        long + "2",
        f"{long}Y",
        f"{long}y",
        "ß",
        "ss",
        "straße",
    ]
    with holdfast.connect(url, namespace="t40") as one, holdfast.connect(url, namespace="T40") as two:
        leases = [one.lock(name).acquire(timeout=0) for name in names]
        assert len({view.name for view in one.survey()}) == len(names)
        leases += [two.lock(name).acquire(timeout=0) for name in names]
        for name in names:
            assert two.lock(name).try_acquire() is None
        assert all(lease.release() for lease in leases)


def test_41_tokens_do_not_go_back_when_a_lagging_replica_is_promoted(
    server: Server, url: str, session_url: str
) -> None:
    """The replica has not seen the last grants, and its tokens are still above theirs."""
    with holdfast.connect(url, namespace="t41") as locks:
        issue(locks)
        assert "linearizable" in locks.promises
    with holdfast.connect(session_url, namespace="t41") as sessions:
        issue(sessions)
    with serving({"server-id": "2", "read-only": "1"}) as replica:
        follow(replica, server)
        with pytest.raises(Misconfigured, match="read_only"):
            holdfast.connect(replica.url("traps"))
        with (
            holdfast.connect(url, namespace="t41") as locks,
            holdfast.connect(session_url, namespace="t41") as sessions,
        ):
            assert "asynchronously" in locks.promises.notes["linearizable"]
            assert "linearizable" not in sessions.promises
            replica.execute("STOP SLAVE")
            tokens = [issue(locks) for _ in range(100)]
            session_tokens = [issue(sessions) for _ in range(100)]
        replica.execute("RESET SLAVE ALL")
        replica.execute("SET GLOBAL read_only = 0")
        [[mark]] = replica.execute("SELECT mark FROM holdfast_claim WHERE name = 't41/door' AND place = 0", "traps")
        assert mark < min(tokens), "it lags"
        with holdfast.connect(replica.url("traps"), namespace="t41") as locks:
            assert issue(locks) > max(tokens)
        with holdfast.connect(replica.url("traps").replace("mysql:", "mysql+session:"), namespace="t41") as sessions:
            assert issue(sessions) > max(session_tokens)


def follow(replica: Server, primary: Server) -> None:
    """Asynchronously, from the beginning; until it has caught up."""
    replica.execute(
        f"CHANGE MASTER TO master_host = '127.0.0.1', master_port = {primary.port}, master_user = 'root', "
        "master_password = '', master_use_gtid = slave_pos"
    )
    replica.execute("START SLAVE")
    [[position]] = primary.execute("SELECT @@gtid_binlog_pos")
    assert replica.execute(f"SELECT MASTER_GTID_WAIT('{position}', 30)") == [(0,)]


def issue(locks: holdfast.Coordinator) -> int:
    lease = locks.lock("door").acquire()
    lease.release()
    return lease.token
