"""Every way to reach a server: URLs, TLS, users, sockets, databases, protocols, and clients of the user's own."""

from __future__ import annotations

from typing import Any

import pytest
import redis
import redis.asyncio

import holdfast
from holdfast.backends.redis.error_mapping import NEEDED
from holdfast.errors import BackendUnavailable, Misconfigured
from tests.redis.faces import both, pair
from tests.support.redis_server import RedisServer, free_ports
from tests.support.redis_topologies import with_tls


@both
def test_a_plain_url_and_a_database(server: RedisServer, face: str) -> None:
    assert pair(face, f"{server.url}/3") > 0
    assert server.client(db=3).keys("holdfast/*")
    assert not server.client().keys("holdfast/line/*")


@both
def test_a_unix_socket(server: RedisServer, face: str) -> None:
    assert pair(face, f"unix://{server.unix_path}?db=2") > 0
    assert pair(face, f"redis+unix://{server.unix_path}") > 0


@both
@pytest.mark.parametrize("protocol", [2, 3])
def test_both_protocols(server: RedisServer, face: str, protocol: int) -> None:
    assert pair(face, f"{server.url}?protocol={protocol}") > 0


@both
def test_tls(face: str) -> None:
    with with_tls() as (server, certificate):
        url = f"rediss://localhost:{server.port}"
        assert pair(face, f"{url}?ssl_ca_certs={certificate}") > 0
        with pytest.raises(BackendUnavailable, match="certificate"):
            pair(face, url)


@both
def test_a_user_that_may_do_only_what_is_needed(server: RedisServer, face: str) -> None:
    """The rights that the error message names are enough; CONFIG is not among them."""
    commands = f"{NEEDED} INFO SELECT".lower()
    rules = ["on", ">s3cret", "~holdfast/*", "&holdfast/*", *(f"+{each}" for each in commands.split(" "))]
    server.client().execute_command("ACL", "SETUSER", "locks", "reset", *rules)
    try:
        assert pair(face, f"redis://locks:s3cret@127.0.0.1:{server.port}") > 0
        locks_url = f"redis://locks:s3cret@127.0.0.1:{server.port}"
        with holdfast.connect(locks_url) as locks:
            with locks.rwlock("contended").write(), holdfast.connect(locks_url) as others:
                with pytest.raises(holdfast.NotAcquired):
                    others.rwlock("contended").read().acquire(timeout=0.1)
            assert "CONFIG" in locks.promises.notes["durable"]
        with pytest.raises(Misconfigured, match="user or password"):
            pair(face, f"redis://locks:wrong@127.0.0.1:{server.port}")
        with pytest.raises(Misconfigured, match="namespace"):
            pair(face, f"redis://locks:s3cret@127.0.0.1:{server.port}", namespace="other")
    finally:
        server.client().execute_command("ACL", "DELUSER", "locks")


@both
@pytest.mark.parametrize("kind", [redis.Redis, redis.asyncio.Redis])
def test_a_client_of_the_users_own(server: RedisServer, face: str, kind: Any) -> None:
    """Where and as whom it connects is taken over; how it behaves (here: decoding) is not."""
    assert pair(face, kind(port=server.port, db=4, decode_responses=True)) > 0
    assert server.client(db=4).keys("holdfast/*")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("redis://localhost?nonsense=1", "nonsense"),
        ("redis://localhost/seven", "seven"),
        ("redis://localhost?wait_replicas=many", "wait_replicas"),
        ("redis://localhost?wait_aof=2", "wait_aof"),
        ("redis+sentinel://localhost", "service"),
        ("redis+cluster://localhost/3", "database"),
        ("redis://localhost?protocol=4", "protocol"),
    ],
)
def test_a_url_that_means_nothing_is_refused_before_anything_is_sent(url: str, why: str) -> None:
    with pytest.raises(Misconfigured, match=why):
        holdfast.connect(url)


def test_nobody_there_says_where_it_looked() -> None:
    [port] = free_ports(1)
    with pytest.raises(BackendUnavailable, match=f"127.0.0.1:{port}"):
        holdfast.connect(f"redis://127.0.0.1:{port}")


def test_a_password_is_never_shown(server: RedisServer) -> None:
    with holdfast.connect(f"redis://default:hush@127.0.0.1:{server.port}") as locks:
        assert "hush" not in repr(locks)
        assert "hush" not in locks.url


@both
def test_names_with_braces_and_signs(server: RedisServer, face: str) -> None:
    for name in ("}", "{", "{}", "a}b{c", "{a}/b", "*", "a?[b]\\c", "ä/ß €", "%s %d"):
        assert pair(face, server.url, name) > 0
