"""Passwords are shown nowhere: not by what is refused, not by a `repr`, whatever characters they are made of."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.backends.redis.address import of_url
from holdfast.errors import HoldfastError, Misconfigured
from tests.redis.faces import both, pair
from tests.support.redis_server import RedisServer

SECRET = "s3cr3t"

REFUSED = [
    "redis://h:1?password=s3cr3t&nonsense=1",
    "redis://h:1?password=s3cr3t&db=nonsense",
    "redis://h:nonsense?password=s3cr3t",
    "redis://:s3cr3t@h:nonsense",
    "redis://:s3cr3t@h:1/nonsense",
    "redis://:s3cr3t@h:1?wait_aof=nonsense",
    "redis://h:1?password=s3cr3t&wait_aof=nonsense",
    "redis://:a?s3cr3t@h:1",
    "redis://:a#s3cr3t@h:1?nonsense=1",
    "redis://:a/s3cr3t@h:nonsense",
    "redis://user:s3cr3t/x@h:1?nonsense=1",
    "unix:///s?password=s3cr3t&nonsense=1",
    "unix://:s3cr3t@/s?nonsense=1",
    "redis+cluster://:s3cr3t@h:1/7",
    "redis+cluster://h:1?password=s3cr3t&nonsense=1",
    "redis+sentinel://h:1/main?sentinel_password=s3cr3t&sentinel_nonsense=1",
    "redis+sentinel://h:1/main?sentinel_password=s3cr3t&sentinel_db=nonsense",
    "redis+sentinel://:s3cr3t@h:1/",
    "rediss://:s3cr3t@h:1?ssl_password=s3cr3t&ssl_cert_reqs=nonsense",
]


def everything(error: BaseException | None) -> str:
    """All that is shown of an error, its causes among it."""
    said = ""
    while error is not None:
        said += f"{error} {error!r} "
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return said


@pytest.mark.parametrize("url", REFUSED)
def test_what_is_refused_does_not_show_them(url: str) -> None:
    with pytest.raises(Misconfigured) as told:
        holdfast.connect(url, request_timeout=0.2)
    assert SECRET not in everything(told.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://:s3cr3t@h:1",
        "redis://h:1?password=s3cr3t",
        "redis+cluster://u:s3cr3t@h:1,i:2",
        "redis+sentinel://:s3cr3t@h:1/main?sentinel_password=s3cr3t",
        "unix://:s3cr3t@/path",
    ],
)
def test_nor_does_the_repr_of_an_address(url: str) -> None:
    assert SECRET not in repr(of_url(url, 5.0))


@pytest.mark.parametrize("password", ["pa/ss", "pa:ss", "pa@ss", "pa%2Fss", "p[a]ss"])
@both
def test_a_password_may_have_any_characters(server: RedisServer, face: str, password: str) -> None:
    plain = password.replace("%2F", "/")
    server.client().execute_command("ACL", "SETUSER", "any", "reset", "on", f">{plain}", "~*", "&*", "+@all")
    try:
        assert pair(face, f"redis://any:{password}@127.0.0.1:{server.port}") > 0
        with pytest.raises(HoldfastError) as told:
            pair(face, f"redis://any:{password}x@127.0.0.1:{server.port}")
        assert plain not in everything(told.value)
    finally:
        server.client().execute_command("ACL", "DELUSER", "any")
