# Generated from src/holdfast/cas/aio/registers.py by `make generate`: change that file, not this one.
"""The registers: what each is made of. Their methods are those of `Register`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ...fenced.clients import check_client
from ...fenced.etcd.programs import check_key as check_etcd_key
from ...fenced.redis.programs import check_key as check_redis_key
from ..codecs import ValueCodec, check_codec
from ..etcd.key import KeyResource
from ..file.content import FileResource
from ..redis.clients import bytes_of, check_redis_client
from ..redis.hashes import HashResource
from ..redis.requests import RedisCommand, RedisScript
from ..redis.strings import StringResource
from ..tries import Retry, Stats
from ..zookeeper.node import NodeResource
from .register import RETRY, Register
from .runner import Transact, asked_by, call, check_colour

T = TypeVar("T")


class RedisKey(Register[T, T]):
    """A string of Redis, through a client of redis-py (`redis.Redis` or `redis.RedisCluster`).

    stock = RedisKey(client, "stock/7", INTEGER)
    left = stock.update(lambda old: old - 1)

    The value itself is compared, so any other writer is noticed. The expiry of the key stays.
    """

    def __init__(
        self, client: Any, key: str, codec: ValueCodec[T], *, retry: Retry = RETRY, stats: Stats | None = None
    ) -> None:
        check_colour(check_redis_client(client, "RedisKey"), "RedisKey")
        check_codec(codec, "RedisKey")
        resource = StringResource(check_redis_key(key), codec, bytes_of(client))
        super().__init__(resource, _asked_of(client), retry, stats)


class RedisHash(Register[dict[str, T], Mapping[str, T | None]]):
    """Fields of a hash of Redis, each with the same codec.

    order = RedisHash(client, "order:7", INTEGER, version_field="version")
    order.update(lambda old: {"paid": old["paid"] + 100})

    What the function returns is set; other fields stay, and a field given as None is deleted. `fields` names those to
    read (all, if None). The fields that were read are compared; or, with `version_field`, only that one, which each
    write counts up.
    """

    def __init__(
        self,
        client: Any,
        key: str,
        codec: ValueCodec[T],
        *,
        fields: Iterable[str] | None = None,
        version_field: str | None = None,
        retry: Retry = RETRY,
        stats: Stats | None = None,
    ) -> None:
        check_colour(check_redis_client(client, "RedisHash"), "RedisHash")
        check_codec(codec, "RedisHash")
        resource = HashResource(check_redis_key(key), codec, bytes_of(client), fields, version_field)
        super().__init__(resource, _asked_of(client), retry, stats)


class EtcdKey(Register[T, T]):
    """A key of etcd, through a function that carries out one transaction of the JSON gateway.

    `holdfast.fenced.etcd.gateway` makes one.

    config = EtcdKey(gateway("http://127.0.0.1:2379"), "config/web", JSON)
    config.update(lambda old: {**old, "workers": 8})

    Its version is the revision of its last write. The etcd lease of the key stays.
    """

    def __init__(
        self,
        transact: Transact,
        key: str | bytes,
        codec: ValueCodec[T],
        *,
        retry: Retry = RETRY,
        stats: Stats | None = None,
    ) -> None:
        perform = asked_by(transact)
        check_codec(codec, "EtcdKey")
        super().__init__(KeyResource(check_etcd_key(key), codec), perform, retry, stats)


class ZNode(Register[T, T]):
    """A node of ZooKeeper, through a started `kazoo.client.KazooClient`.

    leader = ZNode(client, "/config/leader", TEXT)
    leader.update(lambda old: "node-7", default="")

    Its version is ZooKeeper's count of writes. kazoo has no asyncio; see `cas.aio.ZNode`.
    """

    def __init__(
        self, client: Any, path: str, codec: ValueCodec[T], *, retry: Retry = RETRY, stats: Stats | None = None
    ) -> None:
        check_codec(codec, "ZNode")
        wanted = "a started kazoo.client.KazooClient"
        check_client(client, "ZNode", wanted, "get", "set", "create", "transaction")
        super().__init__(NodeResource(client, path, codec), call, retry, stats)


class VersionedFile(Register[T, T]):
    """A file, replaced as a whole.

    >>> import asyncio, pathlib, tempfile
    >>> from holdfast.cas import INTEGER
    >>> counter = VersionedFile(pathlib.Path(tempfile.mkdtemp(), "counter.txt"), INTEGER)
    >>> counter.update(lambda old: old + 1, default=41)
    42

    Its version is a digest of its content. Writers exclude each other by a lock on `PATH.fence`, for which each waits
    up to `lock_timeout` seconds. `durable=False` leaves out the flushes to disk.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        codec: ValueCodec[T],
        *,
        durable: bool = True,
        lock_timeout: float | None = 10.0,
        retry: Retry = RETRY,
        stats: Stats | None = None,
    ) -> None:
        check_codec(codec, "VersionedFile")
        super().__init__(FileResource(path, codec, durable=durable, lock_timeout=lock_timeout), call, retry, stats)


def _asked_of(client: Any) -> Callable[[RedisCommand | RedisScript], object]:
    def perform(request: RedisCommand | RedisScript) -> object:
        if isinstance(request, RedisScript):
            return client.register_script(request.text)(keys=request.keys, args=request.words)
        return client.execute_command(*request.words)

    return perform
