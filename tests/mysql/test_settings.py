"""What is found out at the beginning: users, settings, URLs, TLS; and what is said where it will not do."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
import holdfast.aio
from holdfast.backends.mysql.programs import schema
from holdfast.errors import BackendUnavailable, Misconfigured
from tests.mysql.conftest import new_database
from tests.mysql.house import said
from tests.mysql.server import Server, program, serving

LEVELS = ["REPEATABLE-READ", "SERIALIZABLE"]


def test_a_user_that_may_not_create_is_told_what_to_do(server: Server, database: str) -> None:
    server.execute("CREATE USER clerk@'127.0.0.1'")
    server.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {database}.* TO clerk@'127.0.0.1'")
    url = server.url(database).replace("root@", "clerk@")
    with pytest.raises(Misconfigured, match="holdfast schema mysql"):
        holdfast.connect(url)
    with holdfast.connect(server.url(database)):
        pass  # somebody who may
    with pytest.raises(Misconfigured, match="grant"):
        with holdfast.connect(url) as locks:
            locks.lock("door").acquire()
    server.execute(f"GRANT EXECUTE ON {database}.* TO clerk@'127.0.0.1'")
    with holdfast.connect(url) as locks, locks.lock("door"):
        assert locks.limiter("api", "5/s").try_acquire()
    with holdfast.connect(url.replace("mysql:", "mysql+session:")) as locks, locks.lock("door") as lease:
        assert locks.survey("door")[0].holders[0].token == lease.token
    server.execute("DROP USER clerk@'127.0.0.1'")


def test_the_output_of_holdfast_schema_is_what_the_client_takes(server: Server, database: str) -> None:
    """Fed to MariaDB's own command-line client, delimiters and all."""
    words = [program("mariadb"), "--no-defaults", "-h127.0.0.1", f"-P{server.port}", "-uroot", database]
    for _ in range(2):  # twice is once
        subprocess.run(words, input=schema().encode(), check=True, capture_output=True)
    made = server.execute(f"SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = '{database}'")
    with holdfast.connect(server.url(database)) as locks, locks.lock("door"):
        pass
    assert made == server.execute(
        f"SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = '{database}'"
    )


@pytest.mark.parametrize("settings", [{"transaction-isolation": level} for level in LEVELS], ids=LEVELS)
def test_another_default_isolation_changes_nothing(settings: dict[str, str | None]) -> None:
    """Also with autocommit off, and with a binary log by statement, which does not allow READ COMMITTED."""
    more: dict[str, str | None] = {"autocommit": "0", "log-bin": "log", "binlog-format": "STATEMENT", "server-id": "1"}
    with serving(settings | more) as server:
        inside = []
        with holdfast.connect(server.url(new_database(server))) as locks:

            def work() -> None:
                for _ in range(10):
                    with locks.lock("door", timeout=120):
                        inside.append(1)
                        assert len(inside) == 1
                        inside.clear()

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not locks.survey()
            assert "durable" not in locks.promises


def test_a_server_that_can_only_be_read_is_refused(server: Server, database: str) -> None:
    server.execute("SET GLOBAL read_only = 1")
    try:
        with pytest.raises(Misconfigured, match="read_only"):
            holdfast.connect(server.url(database))
    finally:
        server.execute("SET GLOBAL read_only = 0")


def test_promises_follow_the_settings(server: Server, database: str) -> None:
    with holdfast.connect(server.url(database)) as locks:
        assert "innodb_flush_log_at_trx_commit" in locks.promises.notes["durable"]
        assert {"fencing", "linearizable", "shared", "counting"} <= locks.promises.kept
    with pytest.raises(Misconfigured, match="durable"):
        holdfast.connect(server.url(database), require={"durable"})


def test_bad_urls_are_refused(server: Server) -> None:
    for wrong in ("mysql://127.0.0.1", "mysql://127.0.0.1/db?colour=red", "mysql://127.0.0.1:no/db"):
        with pytest.raises(Misconfigured):
            holdfast.connect(wrong)
    with pytest.raises(BackendUnavailable, match="reached"):
        holdfast.connect("mysql://127.0.0.1:1/db")
    with pytest.raises(Misconfigured, match="let us in"):
        holdfast.connect(server.url("no_such_database"))


def test_the_password_is_not_shown(server: Server, database: str) -> None:
    server.execute("CREATE USER keeper@'127.0.0.1' IDENTIFIED BY 'secret'")
    server.execute(f"GRANT ALL ON {database}.* TO keeper@'127.0.0.1'")
    with holdfast.connect(server.url(database).replace("root@", "keeper:secret@")) as locks:
        assert "secret" not in locks.url
        assert "secret" not in repr(locks)
    server.execute("DROP USER keeper@'127.0.0.1'")


@pytest.fixture
def papers() -> Iterator[Path]:
    """A folder that the server can read, whoever it runs as."""
    with tempfile.TemporaryDirectory(prefix="hf-mysql-tls-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("scheme", ["mysql", "mysql+session"])
def test_tls_changes_nothing(papers: Path, scheme: str) -> None:
    """Replies come in the pieces that TLS makes of them, to threads and to tasks."""
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    words += ["-keyout", str(papers / "key.pem"), "-out", str(papers / "cert.pem")]
    subprocess.run(words, check=True, capture_output=True)
    for file in (papers / "key.pem", papers / "cert.pem"):
        file.chmod(0o644)  # the server may run as another user
    with serving({"ssl-cert": str(papers / "cert.pem"), "ssl-key": str(papers / "key.pem")}) as server:
        url = server.url(new_database(server)).replace("mysql:", f"{scheme}:")

        async def play() -> None:
            async with holdfast.aio.connect(url) as locks:
                leases = await asyncio.gather(*(locks.lock(f"n/{number}").acquire() for number in range(50)))
                assert len(await locks.survey("n/")) == 50
                waiting = asyncio.ensure_future(locks.lock("n/7").acquire(timeout=120))
                while not (await locks.survey("n/7"))[0].waiters:
                    pass
                await asyncio.gather(*(lease.release() for lease in leases))
                await (await waiting).release()

        with holdfast.connect(url) as locks, locks.lock("door"):
            assert said(locks, b"SHOW SESSION STATUS LIKE 'Ssl_cipher'")[0][1], "nothing is encrypted"
        asyncio.run(play())
        with holdfast.connect(f"{url}?ssl_disabled=true") as locks, locks.lock("door"):
            pass
        with holdfast.connect(f"{url}?ssl_ca={papers}/cert.pem&ssl_verify_cert=true") as locks, locks.lock("door"):
            pass


@pytest.mark.parametrize("scheme", ["mysql", "mysql+session"])
@pytest.mark.parametrize(
    "setting",
    [
        *("completion_type = 'CHAIN'", "tx_read_only = 1", "sql_safe_updates = 1"),
        *("sql_select_limit = 1", "max_join_size = 1"),
    ],
)
def test_defaults_of_the_server_change_nothing(own_server: Server, scheme: str, setting: str) -> None:
    name = setting.partition(" ")[0]
    [[before]] = own_server.execute(f"SELECT @@GLOBAL.{name}")
    url = own_server.url(new_database(own_server)).replace("mysql", scheme, 1)
    own_server.execute(f"SET GLOBAL {setting}")
    try:
        with holdfast.connect(url, request_timeout=5) as locks, holdfast.connect(url, request_timeout=5) as others:
            for number in range(3):
                first = locks.lock("door").acquire(timeout=5)
                assert others.lock("door").try_acquire() is None
                assert first.release()
                with others.lock("door", timeout=5), locks.lock(f"other {number}", timeout=5):
                    assert len(locks.survey()) == 2
            assert said(locks, b"CALL holdfast_tidy(10)")
    finally:
        own_server.execute(f"SET GLOBAL {name} = {before!r}")


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """Its defaults are changed."""
    with serving() as server:
        yield server


def test_a_session_lock_is_seen_even_if_its_first_grant_was_cut_short(server: Server, database: str) -> None:
    """Where a long name cannot be written, nothing is left that would hide the lock from then on."""
    door = "door" * 30
    url = server.url(database).replace("mysql:", "mysql+session:")
    with holdfast.connect(url, request_timeout=5) as locks:
        server.execute("ALTER TABLE holdfast_session_name RENAME TO aside", database)
        with pytest.raises(Misconfigured):
            locks.lock(door).acquire(timeout=5)
        server.execute("ALTER TABLE aside RENAME TO holdfast_session_name", database)
        with locks.lock(door, timeout=5):
            assert [view.name for view in locks.survey()] == [door]
