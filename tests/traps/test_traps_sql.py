"""TRAPS 37 to 41 on PostgreSQL: how other lock libraries fail on a database, shown not to happen here."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

import holdfast
from holdfast.errors import NotAcquired
from holdfast.sql import advisory_xact, lock_row
from holdfast.sql.statements import advisory_key
from tests.postgresql.server import Server, free_port, identity, new_folder, program, running
from tests.support.redis_topologies import await_true


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Of these tests' own: one of them counts its connections."""
    with running() as server:
        yield server


def test_37_unrelated_names_do_not_share_an_advisory_key() -> None:
    """16 bits (tooz) meet after some 300 names. 64 bits of a strong hash do not meet in 100,000."""
    keys = {advisory_key("holdfast", f"orders/{number}") for number in range(100_000)}
    assert len(keys) == 100_000
    assert len({key & 0xFFFF for key in keys}) < 65_537, "which would have met, often"
    assert all(-(2**63) <= key < 2**63 for key in keys)


@pytest.mark.parametrize("setting", ["0", "30s", "1d", "250ms"])
def test_38_a_timeout_setting_with_units_is_put_back_as_it_was(server: Server, setting: str) -> None:
    import psycopg

    with psycopg.connect(server.url()) as connection, psycopg.connect(server.url()) as other:
        advisory_xact(other, "busy")
        connection.execute(f"SET LOCAL lock_timeout = '{setting}'")
        before = connection.execute("SHOW lock_timeout").fetchone()
        with pytest.raises(NotAcquired):
            advisory_xact(connection, "busy", timeout=0.05)
        assert connection.execute("SHOW lock_timeout").fetchone() == before
        advisory_xact(connection, "free", timeout=0.05)
        assert connection.execute("SHOW lock_timeout").fetchone() == before


def test_38_what_was_refused_is_not_held(server: Server) -> None:
    """A lock that was granted just when its timeout struck must not stay behind in the transaction."""
    import psycopg

    with psycopg.connect(server.url()) as one, psycopg.connect(server.url()) as two:
        advisory_xact(one, "door")
        with pytest.raises(NotAcquired):
            advisory_xact(two, "door", timeout=0.02)
        one.rollback()
        advisory_xact(one, "door", timeout=0)


def test_39_connections_keep_themselves_alive(server: Server) -> None:
    """A dead peer is noticed in seconds, not in the system's two hours."""
    from tests.postgresql.house import connector

    link = connector(server.url()).dial()
    said = {option.keyword: option.val for option in link.connection._handle.info}
    link.close()
    assert said[b"keepalives"] == b"1"
    idle, every, count = (int(said[b"keepalives_" + what] or 0) for what in (b"idle", b"interval", b"count"))
    assert 0 < idle + every * count <= 30


def test_39_the_server_notices_a_dead_holder(server: Server) -> None:
    """By keep-alives of its own, which the session asks for."""
    from holdfast.backends.postgresql.session.engine import FIRST_WORDS
    from tests.postgresql.house import connector

    link = connector(server.url()).dial(FIRST_WORDS)
    settings = ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout")
    shown = [link.say(f"SHOW {what}".encode(), 5.0)[0][0] for what in settings]
    link.close()
    assert shown == [b"10", b"5", b"3", b"25000"], "the last one counts while a reply is not taken"


def test_39_a_forked_child_does_not_keep_a_dead_parents_lock(server: Server) -> None:
    """The child closes the parent's socket at once, so the server sees the parent's end."""
    url = server.url().replace("postgresql:", "postgresql+session:")
    program = (
        "import os, sys, time, holdfast\n"
        "locks = holdfast.connect(sys.argv[1], namespace='t39'); lease = locks.lock('door').acquire()\n"
        "child = os.fork()\n"
        "if not child: time.sleep(600); os._exit(0)\n"
        "print(child, flush=True); input()\n"
    )
    words = [sys.executable, "-c", program, url]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            parent.kill()
            with holdfast.connect(url, namespace="t39") as locks, locks.lock("door", timeout=120):
                os.kill(child, 0)  # it lives
        finally:
            os.kill(child, signal.SIGKILL)


def test_39_a_waiting_lock_keeps_no_connection_from_the_work(server: Server) -> None:
    """One connection serves all requests and another all waiters, so locks cannot use the work's connections up."""
    import threading

    def connections() -> int:
        said = server.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast'")
        return int(said[0][0])

    await_true(lambda: connections() == 0, "the connections of other tests to end")
    with holdfast.connect(server.url(), namespace="t39") as locks:
        holder = locks.lock("door").acquire()
        threads = [threading.Thread(target=lambda: locks.lock("door").acquire().release()) for _ in range(64)]
        for thread in threads:
            thread.start()
        while sum(len(view.waiters) for view in locks.survey("door")) < 64:
            pass
        assert connections() == 2
        holder.release()
        for thread in threads:
            thread.join(120)
        assert not locks.survey()


MARKS = {
    "postgresql": "SELECT mark FROM holdfast_claim WHERE name = 'postgresql/door' AND place = 0",
    "postgresql+session": "SELECT mark FROM holdfast_session WHERE name = 'postgresql+session/door'",
}


@pytest.mark.parametrize("scheme", MARKS)
def test_41_tokens_do_not_go_back_when_a_lagging_standby_is_promoted(server: Server, scheme: str) -> None:
    """The standby has not seen the last grants, and its tokens are still above theirs."""

    def connect(where: Server) -> holdfast.Coordinator:
        return holdfast.connect(where.url().replace("postgresql:", f"{scheme}:"), namespace=scheme)

    with connect(server) as locks:
        locks.lock("door").acquire().release()
        assert "linearizable" in locks.promises
    with standby_of(server) as standby:
        with connect(server) as locks:
            assert "asynchronously" in locks.promises.notes["linearizable"]
            with pytest.raises(holdfast.errors.Misconfigured, match="standby"):
                connect(standby)
            deafen(standby)
            tokens = [issue(locks) for _ in range(100)]
        standby.execute("SELECT pg_promote()")
        [[mark]] = standby.execute(MARKS[scheme])
        assert mark < min(tokens), "it lags"
        with connect(standby) as locks:
            assert issue(locks) > max(tokens)
    while server.execute("SELECT count(*) FROM pg_stat_replication") != [(0,)]:
        pass


def deafen(standby: Server) -> None:
    """What the primary says from now on does not arrive."""
    standby.execute("ALTER SYSTEM SET primary_conninfo = ''")
    standby.execute("SELECT pg_reload_conf()")
    while standby.execute("SELECT count(*) FROM pg_stat_wal_receiver") != [(0,)]:
        pass


def issue(locks: holdfast.Coordinator) -> int:
    lease = locks.lock("door").acquire()
    lease.release()
    return lease.token


class standby_of:  # noqa: N801  used like a function
    """A standby that follows a server asynchronously."""

    def __init__(self, primary: Server) -> None:
        self._primary = primary

    def __enter__(self) -> Server:
        folder = new_folder("hf-standby-")
        words = [program("pg_basebackup"), "-D", str(folder / "data"), "-R", "-c", "fast", "-X", "stream"]
        words += ["-h", "127.0.0.1", "-p", str(self._primary.port), "-U", "postgres"]
        subprocess.run(words, check=True, capture_output=True, cwd=folder, **identity())
        self._standby = Server(folder, free_port())
        self._standby.start()
        while self._primary.execute("SELECT state FROM pg_stat_replication") != [("streaming",)]:
            pass  # it answers before it follows
        return self._standby

    def __exit__(self, *_: object) -> None:
        self._standby.stop(signal.SIGQUIT)
        shutil.rmtree(self._standby.folder, ignore_errors=True)


def test_row_locks_are_held_by_the_transaction_that_asked(server: Server) -> None:
    """And not by a pool's: what `lock_row` locked is free when that connection is."""
    import psycopg

    server.execute("CREATE TABLE work (id integer PRIMARY KEY)")
    server.execute("INSERT INTO work VALUES (1)")
    with psycopg.connect(server.url()) as one:
        assert lock_row(one, "work", {"id": 1}) == {"id": 1}
    with psycopg.connect(server.url()) as two:
        assert lock_row(two, "work", {"id": 1}, nowait=True) == {"id": 1}
