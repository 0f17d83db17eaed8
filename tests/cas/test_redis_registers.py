"""The promises of all registers, on Redis: strings and hashes, also through a client that decodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import redis
import redis.asyncio

import holdfast.cas.aio as cas_aio
from holdfast import cas
from holdfast.fenced.redis import RedisFence
from tests.cas.faces import Counter, Place, at_once, looping
from tests.cas.promises import *  # noqa: F403
from tests.support.redis_server import RedisServer

KINDS: dict[str, Any] = {
    "string": (cas.RedisKey, cas_aio.RedisKey, {}, {}),
    "decoded": (cas.RedisKey, cas_aio.RedisKey, {}, {"decode_responses": True}),
    "hash": (cas.RedisHash, cas_aio.RedisHash, {}, {}),
    "fields": (cas.RedisHash, cas_aio.RedisHash, {"fields": ["n", "m"]}, {"decode_responses": True}),
    "counted": (cas.RedisHash, cas_aio.RedisHash, {"version_field": "version"}, {}),
}


@pytest.fixture(params=[f"{kind}-{colour}" for kind in KINDS for colour in ("threads", "asyncio")])
def place(request: pytest.FixtureRequest, redis_server: RedisServer) -> Iterator[Place]:
    redis_server.raw("FLUSHALL")
    kind, _, colour = request.param.partition("-")
    blocking, asynchronous, options, client_options = KINDS[kind]
    field = "n" if blocking is cas.RedisHash else None
    with ExitStack() as stack:

        def counter(codec: Any = cas.INTEGER, **more: Any) -> Counter:
            if colour == "threads":
                client = stack.enter_context(redis_server.client(**client_options))
                return Counter(blocking(client, "stock/7", codec, **options, **more), at_once, field)
            loop = stack.enter_context(looping())
            client = redis.asyncio.Redis(unix_socket_path=str(redis_server.unix_path), **client_options)
            stack.callback(lambda: loop.wait(client.aclose()))
            return Counter(asynchronous(client, "stock/7", codec, **options, **more), loop.wait, field)

        yield Place(counter, lambda token: RedisFence(redis_server.client()).claim("stock/7", token))
