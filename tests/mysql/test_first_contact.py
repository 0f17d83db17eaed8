"""The first connection tells what is wrong, at once, in words that help and that give no secret away."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest

import holdfast
import holdfast.aio
from holdfast.backends.mysql.address import read_login
from holdfast.backends.mysql.handshake import Handshake, Packet
from holdfast.errors import Misconfigured
from tests.mysql.server import Server, serving

SECRETS = (
    "mysql://keeper:s3/cr3t@127.0.0.1/db",
    "mysql://keeper:s3?cr3t@127.0.0.1/db",
    "mysql://keeper:s3#cr3t@127.0.0.1/db",
    "mysql://keeper:s3:cr3t@127.0.0.1:no/db",
    "mysql://keeper:s3@cr3t@127.0.0.1/db?colour=red",
    "mysql://keeper@127.0.0.1/db?password=s3cr3t",
    "mysql://keeper@127.0.0.1/db?passwd=s3&x=cr3t",
    "mysql://keeper:s3cr3t@127.0.0.1",
    "mysql+session://keeper:s3/cr3t@127.0.0.1/db",
)


@pytest.mark.parametrize("url", SECRETS)
def test_no_error_shows_a_password(url: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        holdfast.connect(url, request_timeout=0.5)
    told = "".join(traceback.format_exception(caught.value))
    assert "cr3t" not in told
    assert "s3" not in told


def test_a_password_that_is_not_escaped_is_named_as_the_cause() -> None:
    with pytest.raises(Misconfigured, match="%2F"):
        holdfast.connect("mysql://keeper:s3/cr3t@127.0.0.1/db")


@pytest.mark.parametrize("scheme", ["mariadb", "mariadb+session"])
def test_the_products_own_name_is_a_scheme(url: str, scheme: str) -> None:
    with holdfast.connect(url.replace("mysql", scheme)) as locks, locks.lock("door"):
        again = holdfast.connect(url.replace("mysql", scheme.replace("mariadb", "mysql")))
        assert again.lock("door").try_acquire() is None
        again.close()


def test_a_wrong_password_is_a_mistake_and_not_a_fault(server: Server, database: str) -> None:
    server.execute("CREATE USER shy@'127.0.0.1' IDENTIFIED BY 'right'")
    wrong = server.url(database).replace("root@", "shy:wrong@")

    async def connect() -> None:
        await holdfast.aio.connect(wrong)

    with pytest.raises(Misconfigured, match="let us in"):
        holdfast.connect(wrong)
    with pytest.raises(Misconfigured, match="let us in"):
        asyncio.run(connect())
    server.execute("DROP USER shy@'127.0.0.1'")


@pytest.mark.parametrize("how", ["ACCOUNT LOCK", "PASSWORD EXPIRE"])
def test_an_account_that_is_locked_out_is_a_mistake_and_not_a_fault(server: Server, database: str, how: str) -> None:
    server.execute(f"CREATE OR REPLACE USER shut@'127.0.0.1' {how}")
    server.execute(f"GRANT ALL ON {database}.* TO shut@'127.0.0.1'")
    try:
        with pytest.raises(Misconfigured, match="does not let us in"):
            holdfast.connect(server.url(database).replace("root@", "shut@"))
    finally:
        server.execute("DROP USER shut@'127.0.0.1'")


def test_a_password_may_have_any_characters(server: Server, database: str) -> None:
    password = "pass w\u00f6rd \u20ac/?#@:%"
    server.execute(f"CREATE USER wide@'127.0.0.1' IDENTIFIED BY '{password}'")
    server.execute(f"GRANT ALL ON {database}.* TO wide@'127.0.0.1'")
    try:
        with holdfast.connect(server.url(database).replace("root@", f"wide:{quote(password, safe='')}@")) as locks:
            assert locks.lock("door").acquire().release()
    finally:
        server.execute("DROP USER wide@'127.0.0.1'")


@pytest.mark.parametrize("plugin", [b"mysql_clear_password", b"dialog"])
def test_the_password_itself_is_told_only_where_nobody_can_listen(plugin: bytes) -> None:
    url = "mysql://keeper:s3cr3t@{}/db?ssl_disabled=true"

    def answer(host: str) -> bytes:
        talk = Handshake(read_login(url.format(host))()).log_in()
        next(talk)
        hello = b"\x0a10.11-MariaDB\0" + bytes(4) + b"12345678\0" + b"\xff\xf7\x2d\2\0\xff\x81\x15"
        talk.send(Packet(0, hello + bytes(10) + b"123456789012\0mysql_native_password\0"))
        said = talk.send(Packet(2, b"\xfe" + plugin + b"\0" + (b"\4Password: " if plugin == b"dialog" else b"")))
        assert isinstance(said, bytes)
        return said

    assert b"s3cr3t" in answer("127.0.0.1")
    with pytest.raises(RuntimeError, match="use TLS"):
        answer("192.0.2.1")


def packet(number: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "little") + bytes((number,)) + body


@contextmanager
def mysql_8() -> Iterator[int]:
    """What a server of MySQL 8 says until the log-in, as far as a client gets without more packages."""
    flags = 0x0200 | 0x8000 | 0x0008 | 0x0001  # protocol 4.1, its log-in, with a database, long passwords
    hello = b"\x0a8.0.36\0" + (7).to_bytes(4, "little") + b"12345678\0" + flags.to_bytes(2, "little") + b"\x2d\x02\0"
    hello += (0x0008).to_bytes(2, "little") + bytes((21,)) + bytes(10) + b"123456789012\0" + b"caching_sha2_password\0"

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                client.settimeout(5)
                client.sendall(packet(0, hello))
                client.recv(65536)
                client.sendall(packet(2, b"\x01\x04"))  # the whole of it, please
                client.recv(65536)
                client.sendall(packet(4, b"\x01-----BEGIN PUBLIC KEY-----\n"))
                client.recv(65536)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def test_a_server_of_mysql_is_refused_at_once() -> None:
    """Also if the log-in fails, because its kind of password needs a package that is not there."""
    with mysql_8() as port, pytest.raises(Misconfigured, match=r"8\.0\.36.*MariaDB"):
        holdfast.connect(f"mysql://root:secret@127.0.0.1:{port}/db", request_timeout=5)


def test_a_replica_is_seen_by_those_who_may_see_no_sessions_of_others() -> None:
    with serving({"log-bin": "log", "server-id": "1"}) as primary, serving({"server-id": "2"}) as replica:
        primary.execute("CREATE DATABASE db")
        holdfast.connect(primary.url("db")).close()
        primary.execute("CREATE USER humble@'127.0.0.1'")
        primary.execute("GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON db.* TO humble@'127.0.0.1'")
        url = primary.url("db").replace("root@", "humble@")
        with holdfast.connect(url) as locks:
            assert "linearizable" in locks.promises.kept
        replica.execute(
            f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={primary.port}, MASTER_USER='root', "
            "MASTER_USE_GTID=no"
        )
        replica.execute("START SLAVE")
        end = time.monotonic() + 60
        while not primary.execute("SHOW SLAVE HOSTS") and time.monotonic() < end:
            time.sleep(0.05)
        for scheme in ("mysql", "mysql+session"):
            with holdfast.connect(url.replace("mysql", scheme)) as locks:
                assert "linearizable" not in locks.promises.kept
        replica.execute("STOP SLAVE")
