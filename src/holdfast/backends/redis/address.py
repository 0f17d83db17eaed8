"""What a URL, or a client of redis-py, says about where and how to connect.

    redis://user:password@host:port/db      rediss:// is the same with TLS
    unix:///path/to/socket?db=0             also redis+unix://
    redis+sentinel://host:port,host:port/service/db?sentinel_password=…
    redis+cluster://host:port,host:port     the password and TLS options as elsewhere; ssl=true for TLS

Options of ours: `wait_replicas=n`, `wait_aof=local,replicas`, `wait_timeout=seconds`. All others are redis-py's.

Secrets: the user and the password are taken out first, whatever characters they are made of, and never given to a
parser whose errors could show them. What is shown of a URL is its scheme and what follows the last '@', and no option.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from ...errors import Misconfigured
from .durability import Durability
from .server import WHERE, SentinelService, Server, need_redis_py

SENTINEL = "sentinel_"
SECRETS = ("username", "password", "ssl_password")


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """Where to connect. `seeds` are the known nodes of a cluster, else there is one primary."""

    url: str
    primary: Server | SentinelService
    seeds: tuple[Server, ...] = ()
    durability: Durability | None = None


def of_url(url: str, request_timeout: float) -> RedisAddress:
    scheme, _, rest = url.partition("://")
    body, _, query = rest.partition("?")
    userinfo, _, place = body.rpartition("@")
    shown = f"{scheme}://{place}"
    before, at, behind = query.rpartition("@")
    if at and "=" not in before.rpartition("&")[2]:  # no option has an '@' in its name
        raise Misconfigured(f"{scheme}://…@{behind}: a '?' in a user or password is to be written as %3F")
    options = dict(parse_qsl(query, keep_blank_values=True))
    durability = _durability(shown, options, request_timeout)
    secured = scheme == "rediss" or options.pop("ssl", "").lower() in ("1", "true", "yes")
    who = _who(userinfo)
    if scheme in ("redis+sentinel", "redis+cluster"):
        hosts, _, path = place.partition("/")
        if scheme == "redis+cluster":
            if path.strip("/") not in ("", "0"):
                raise Misconfigured(f"{shown}: a cluster has no database but 0")
            seeds = tuple(_server(who, host, "", options, secured) for host in hosts.split(","))
            return RedisAddress(shown, seeds[0], seeds, durability)
        service, _, db = path.partition("/")
        if not service:
            raise Misconfigured(f"{shown} names no service; write redis+sentinel://host:port,host:port/service")
        asked = {name.removeprefix(SENTINEL): options.pop(name) for name in list(options) if name.startswith(SENTINEL)}
        sentinels = tuple(_server({}, host, "", asked, False, 26379) for host in hosts.split(","))
        return RedisAddress(
            shown, SentinelService(unquote(service), sentinels, _server(who, "", db, options, secured)), (), durability
        )
    if scheme in ("unix", "redis+unix"):
        return RedisAddress(shown, _parse(f"unix://{place}", who, options), (), durability)
    host, _, db = place.partition("/")
    return RedisAddress(shown, _server(who, host, db, options, secured), (), durability)


def _who(userinfo: str) -> dict[str, str]:
    """The user and the password that stand before the '@'."""
    user, _, password = userinfo.partition(":")
    return {name: unquote(said) for name, said in (("username", user), ("password", password)) if said}


def _server(who: dict[str, str], host: str, db: str, options: dict[str, str], secured: bool, port: int = 0) -> Server:
    if port and host.rpartition(":")[2].isdigit() is False:
        host = f"{host}:{port}"
    if db and not db.isdigit():
        raise Misconfigured(f"{db!r} is not the number of a database; write redis://{host}/0")
    return _parse(f"{'rediss' if secured else 'redis'}://{host}/{db}", who, options)


def _parse(url: str, who: dict[str, str], options: dict[str, str]) -> Server:
    """`url` has neither user nor password, so it may be shown; what stands in the options may not."""
    redis = need_redis_py()
    secret = {name: options[name] for name in SECRETS if name in options}
    told = urlencode({name: said for name, said in options.items() if name not in secret})
    try:
        found = redis.connection.parse_url(f"{url}?{told}" if told else url)
    except ValueError as error:
        raise Misconfigured(f"{url}: {error}") from error
    found |= who | secret
    kind = found.pop("connection_class", redis.connection.Connection).__name__
    for name in found:
        if name not in WHERE and not name.startswith("ssl_"):
            raise Misconfigured(f"{url} has an option that is not known here: {name}")
    if "protocol" in found:
        if str(found["protocol"]) not in ("2", "3"):
            raise Misconfigured(f"{url}: protocol={found['protocol']} is neither 2 nor 3")
        found["protocol"] = int(found["protocol"])
    server = Server(kind, found)
    server.build()  # finds out what redis-py does not take
    return server


def _durability(shown: str, options: dict[str, str], request_timeout: float) -> Durability | None:
    try:
        replicas = int(options.pop("wait_replicas", "0"))
        aof = options.pop("wait_aof", "")
        disks = [int(count) for count in aof.split(",")] if aof else []
        timeout = float(options.pop("wait_timeout", request_timeout / 2))
        if replicas < 0 or len(disks) > 2 or min(disks, default=0) < 0 or (disks and disks[0] > 1) or timeout <= 0:
            raise ValueError
    except ValueError:
        raise Misconfigured(
            f"{shown}: wait_replicas is a number, wait_aof is 'local,replicas' with local 0 or 1, "
            "wait_timeout is seconds above 0"
        ) from None
    if not replicas and not any(disks):
        return None
    return Durability(replicas, (disks[0], disks[1] if len(disks) > 1 else 0) if disks else None, timeout)


def of_client(client: Any) -> RedisAddress:
    """A client of redis-py, blocking or asyncio: connections of our own are opened to where it connects."""
    if (nodes := getattr(client, "nodes_manager", None)) is not None:
        options = _where(nodes.connection_kwargs)
        kind = "SSLConnection" if nodes.connection_kwargs.get("ssl") else "Connection"
        seeds = tuple(Server(kind, {**options, "host": n.host, "port": n.port}) for n in nodes.startup_nodes.values())
        return RedisAddress(_shown("redis+cluster", seeds[0]), seeds[0], seeds)
    pool = getattr(client, "connection_pool", None)
    if pool is None:
        raise Misconfigured(f"connect() takes a URL, or a client of redis-py; {client!r} is neither")
    options = _where(pool.connection_kwargs)
    kind = _kind(pool.connection_class.__name__, options)
    if (manager := getattr(pool, "sentinel_manager", None)) is not None:
        sentinels = tuple(Server("Connection", _where(s.connection_pool.connection_kwargs)) for s in manager.sentinels)
        return RedisAddress(
            f"redis+sentinel://{quote(sentinels[0].place)}/{quote(pool.service_name)}",
            SentinelService(pool.service_name, sentinels, Server(kind, options)),
        )
    server = Server(kind, options)
    server.build()
    return RedisAddress(_shown("unix" if "path" in options else "redis", server), server)


def _kind(name: str, options: Mapping[str, Any]) -> str:
    """Of redis-py's kinds of connections, the one whose way a user's own kind goes."""
    return "UnixDomainSocketConnection" if "path" in options else "SSLConnection" if "SSL" in name else "Connection"


def _where(options: dict[str, Any]) -> dict[str, Any]:
    return {n: v for n, v in options.items() if (n in WHERE or n.startswith("ssl_")) and v is not None}


def _shown(scheme: str, server: Server) -> str:
    return f"{scheme}://{server.place}"
