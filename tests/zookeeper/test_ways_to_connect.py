"""URLs, credentials, TLS, several hosts."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
import holdfast.aio
from holdfast._core.flow import NOW, Endpoint, Flow
from holdfast.backends.zookeeper import connector
from holdfast.backends.zookeeper.address import Address, parse
from holdfast.backends.zookeeper.tree import Tree
from holdfast.errors import BackendUnavailable, Misconfigured
from holdfast.sync.client_driver import Monitor
from tests.zookeeper.ensemble import Ensemble, free_ports, running


def test_a_url_is_taken_apart() -> None:
    assert parse("zookeeper://a") == Address((("a", 2181),))
    assert parse("zookeeper://a:1,[::1]:2,c/x/y/") == Address((("a", 1), ("::1", 2), ("c", 2181)), "/x/y")
    found = parse("zookeepers://me:p%40ss@a/x?ca=/ca.pem&verify=no")
    assert found == Address((("a", 2181),), "/x", "me", "p@ss", True, "/ca.pem", verify=False)
    assert found.credentials == (("digest", b"me:p@ss"),)
    assert found.shown == "zookeepers://me@a:2181/x"


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("zookeeper://", "host"),
        ("zookeeper://a,,b", "host"),
        ("zookeeper://a:x", "host"),
        ("zookeeper://a:0", "host"),
        ("zookeeper://a?colour=green", "colour"),
        ("zookeeper://a?ca=x", "zookeepers"),
        ("zookeepers://a?verify=perhaps", "verify"),
        ("zookeepers://a?ca=/nowhere/ca.pem", "certificates"),
        ("zookeeper://:secret@a", "user"),
        ("zookeeper://a/../b", "path"),
        ("zookeeper://a//b", "path"),
        ("zookeeper://a/%01b", "path"),
    ],
)
def test_a_bad_url_is_refused(url: str, word: str) -> None:
    with pytest.raises(Misconfigured, match=word):
        holdfast.connect(url)


def test_nobody_there() -> None:
    one, other = free_ports(2)
    with pytest.raises(BackendUnavailable, match=str(one)):
        holdfast.connect(f"zookeeper://127.0.0.1:{one},127.0.0.1:{other}", request_timeout=1)


def test_some_hosts_are_down(ensemble: Ensemble) -> None:
    hosts = ",".join(f"127.0.0.1:{port}" for port in free_ports(2))
    for _ in range(3):  # the order is by chance
        with holdfast.connect(f"zookeeper://{hosts},{ensemble.hosts}") as locks, locks.lock("door"):
            pass


def test_a_chroot_is_made_and_kept_apart(ensemble: Ensemble) -> None:
    with (
        holdfast.connect(f"{ensemble.url}/deep/down") as one,
        holdfast.connect(f"{ensemble.url}/deep") as other,
        one.lock("door") as lease,
        other.lock("door", timeout=0) as second,
    ):
        assert [view.name for view in one.survey()] == ["door"]
        assert lease.guard()[0].startswith("/deep/down/holdfast/door/")
        assert second.guard()[0].startswith("/deep/holdfast/door/")
        assert one.promises.kept == {"fencing", "linearizable", "durable", "shared", "counting"}
        assert "open to the world" in one.promises.notes["access"]


def test_credentials_keep_others_out(ensemble: Ensemble) -> None:
    """All nodes belong to the user of the URL; who comes without is told so."""
    mine = f"zookeeper://me:secret@{ensemble.hosts}/private"
    with holdfast.connect(mine) as locks:
        with locks.lock("door"):
            assert "access" not in locks.promises.notes
            assert locks.lock("door").try_acquire() is None
            assert locks.limiter("mail", "1/h").try_acquire()
        with locks.lock("late", lock_delay=1, fair=False), locks.semaphore("pool", permits=2):
            pass
    for stranger in (f"zookeeper://{ensemble.hosts}/private", f"zookeeper://me:wrong@{ensemble.hosts}/private"):
        with pytest.raises(Misconfigured, match="NoAuth"), holdfast.connect(stranger) as locks, locks.lock("door"):
            pass

    async def later() -> None:
        async with holdfast.aio.connect(mine) as locks, locks.lock("door") as lease:
            assert await locks.check(lease.sequencer())

    asyncio.run(later())


def test_a_client_of_kazoo_in_place_of_a_url(ensemble: Ensemble) -> None:
    """The same servers and credentials; a session of our own."""
    from kazoo.client import KazooClient

    client = KazooClient(f"{ensemble.hosts}/by-client", auth_data=[("digest", "me:secret")])
    with holdfast.connect(client) as locks, locks.lock("door") as lease:
        assert locks.url == f"zookeeper://me@{ensemble.hosts}/by-client"
        assert lease.guard()[0].startswith("/by-client/holdfast/door/")
    with pytest.raises(Misconfigured, match="x509"):
        holdfast.connect(KazooClient(ensemble.hosts, auth_data=[("x509", "me")]))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1, signed by itself, and the Java stores with it."""
    folder = tmp_path_factory.mktemp("certificates")
    pem = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1")
    more = ("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem")
    subprocess.run([*pem, *more], cwd=folder, check=True, capture_output=True)
    p12 = (
        "openssl",
        "pkcs12",
        "-export",
        "-in",
        "cert.pem",
        "-inkey",
        "key.pem",
        "-out",
        "key.p12",
        "-passout",
        "pass:secret",
    )
    subprocess.run(p12, cwd=folder, check=True, capture_output=True)
    trust = ("keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", "cert.pem", "-keystore", "trust.p12")
    subprocess.run(
        [*trust, "-storetype", "PKCS12", "-storepass", "secret"], cwd=folder, check=True, capture_output=True
    )
    assert shutil.which("keytool")
    return folder


@pytest.fixture(scope="module")
def secure(certificates: Path) -> Iterator[str]:
    [port] = free_ports(1)
    more = f"secureClientPort={port}\nserverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
    options = tuple(
        f"-Dzookeeper.ssl.{name}={value}"
        for name, value in {
            "keyStore.location": certificates / "key.p12",
            "keyStore.password": "secret",
            "trustStore.location": certificates / "trust.p12",
            "trustStore.password": "secret",
            "clientAuth": "need",
        }.items()
    )
    with running(members=1, more=more, options=options):
        yield f"zookeepers://127.0.0.1:{port}"


def test_tls_with_certificates_on_both_sides(secure: str, certificates: Path) -> None:
    ours = f"?ca={certificates}/cert.pem&cert={certificates}/cert.pem&key={certificates}/key.pem"
    with holdfast.connect(secure + ours, request_timeout=30) as locks:  # a first handshake takes Java its time
        with locks.lock("door") as lease:
            assert locks.lock("door").try_acquire() is None
            assert locks.check(lease.sequencer())

    async def later() -> None:
        async with holdfast.aio.connect(secure + ours, request_timeout=30) as locks, locks.lock("door") as lease:
            await lease.renew()

    asyncio.run(later())
    unverified = f"?verify=false&cert={certificates}/cert.pem&key={certificates}/key.pem"
    with holdfast.connect(secure + unverified, request_timeout=30) as locks, locks.lock("door"):
        pass


def test_tls_that_is_not_trusted(secure: str, certificates: Path) -> None:
    for options in ("", f"?ca={certificates}/cert.pem"):
        with pytest.raises(BackendUnavailable):
            holdfast.connect(secure + options, request_timeout=2)


@pytest.mark.parametrize(("failure", "tries"), [(ConnectionResetError, 4), (ConnectionRefusedError, 2)])
def test_servers_that_elect_a_leader_are_asked_again(
    failure: type[OSError], tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are not there are not: whoever mistypes a port is told at once."""
    asked: list[object] = []

    def first_words(*words: object) -> Flow[connector.Ensemble]:
        yield NOW
        asked.append(words)
        if len(asked) < 4:
            raise failure("not now")
        return connector.Ensemble(4.0, "c")

    monkeypatch.setattr(connector, "_ask_one", first_words)
    tree = Tree.of("", "holdfast", b"")
    servers = connector.ServerRotation([Endpoint("a", 2181), Endpoint("b", 2181)], "zookeeper://a,b")
    if failure is ConnectionRefusedError:
        with pytest.raises(BackendUnavailable, match="not now"):
            Monitor().run(connector.ask_ensemble(servers, (), tree, 5.0))
    else:
        assert Monitor().run(connector.ask_ensemble(servers, (), tree, 5.0)).cluster == "c"
    assert len(asked) == tries
