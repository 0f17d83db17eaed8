"""`redlock://[user:password@]h1:p1,h2:p2,h3:p3[/db]?options`: N independent primaries, used as a quorum.

Options of ours, in seconds: `node_timeout` (how long a node is waited for, 0.25), `longest_ttl` (60) and `found_after`
(0: how long nodes that all remember nothing wait until they are taken for new ones); for the last two see `recovery`.
All others are those of redis://, the same for all nodes; `ssl=true` for TLS.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from ...errors import Misconfigured
from ..redis.address import of_url as redis_of_url
from ..redis.server import Server

NODE_TIMEOUT_S = 0.25
LONGEST_TTL_S = 60.0


@dataclass(frozen=True, slots=True)
class RedlockAddress:
    """The nodes, and our options. `url` and `places` are without secrets."""

    url: str
    servers: tuple[Server, ...]
    places: tuple[str, ...]
    node_timeout: float
    longest_ttl: float
    found_after: float


def of_url(url: str, request_timeout: float) -> RedlockAddress:
    body, _, query = url.removeprefix("redlock://").partition("?")
    userinfo, at, place = body.rpartition("@")
    hosts, _, db = place.partition("/")
    shown = f"redlock://{place}"
    options = dict(parse_qsl(query, keep_blank_values=True))
    node_timeout = _seconds(shown, "node_timeout", options.pop("node_timeout", ""), NODE_TIMEOUT_S)
    longest_ttl = _seconds(shown, "longest_ttl", options.pop("longest_ttl", ""), LONGEST_TTL_S)
    found_after = _seconds(shown, "found_after", options.pop("found_after", ""), 0.0)
    nodes = hosts.split(",")
    if len(nodes) < 3 or not all(nodes):
        raise Misconfigured(f"{shown} needs at least 3 nodes (an odd number), as in redlock://host1:6379,host2,host3")
    for option in ("wait_replicas", "wait_aof", "wait_timeout"):
        if option in options:
            raise Misconfigured(f"{shown}: {option} is for one primary with replicas; the nodes of a quorum have none")
    rest = f"?{urlencode(options)}" if options else ""
    addresses = [redis_of_url(f"redis://{userinfo}{at}{node}/{db}{rest}", request_timeout) for node in nodes]
    servers = tuple(address.primary for address in addresses if isinstance(address.primary, Server))
    places = tuple(address.url.removeprefix("redis://") for address in addresses)
    if len(set(places)) < len(places):
        raise Misconfigured(f"{shown} names a node twice; it would have two votes: name each once")
    return RedlockAddress(shown, servers, places, node_timeout, longest_ttl, found_after)


def _seconds(shown: str, name: str, text: str, default: float) -> float:
    try:
        value = float(text or default)
    except ValueError:
        value = 0.0
    if text and not 0.001 <= value <= 86400.0:
        raise Misconfigured(f"{shown}: {name}={text!r} is not a number of seconds from 0.001 to a day")
    return value
