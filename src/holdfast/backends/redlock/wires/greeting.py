"""The first words on a connection: can this node keep what it says, does it remember, and teach it the programs.

A node that may evict keys can not keep marks, and is not used. A connection never outlives a run of its server, so
that a restart is noticed here, before the first vote (see `scripts/hello.lua`).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ....errors import Misconfigured
from ...redis.resp import Error, bulk, command
from ..fanout import EVERYBODY, Fanout
from ..programs import HOT, frame_with_source, program

Greeting: TypeAlias = Generator[Sequence[bytes], Sequence[Any], None]


@dataclass(frozen=True, slots=True)
class Manners:
    """What every node is told. `nonce` is new for each."""

    marks: str
    longest_us: int


def greet(manners: Manners, nonce: str) -> Greeting:
    """Yields commands, is sent their replies; raises `Misconfigured` if this node can not be used."""
    loads = [b"*3\r\n" + bulk(b"SCRIPT") + bulk(b"LOAD") + bulk(program(verb).source) for verb in HOT]
    replies = yield [command("CONFIG", "GET", "append*"), command("CONFIG", "GET", "maxmemory*"), *loads]
    appending, memory = _settings(replies[0]), _settings(replies[1])
    _check(replies[2:])
    policy = memory.get("maxmemory-policy", "noeviction")
    if policy != "noeviction" and memory.get("maxmemory", "0") != "0":
        raise Misconfigured(f"it evicts keys (maxmemory-policy {policy}), and locks with them; set noeviction")
    durable = appending.get("appendonly") == "yes" and appending.get("appendfsync") == "always"
    hello = Fanout("hello", (manners.marks,), (nonce, f"{manners.longest_us:016d}", str(int(durable))), EVERYBODY)
    _check((yield [frame_with_source(hello)]))


def _settings(reply: Any) -> dict[str, str]:
    """What the node tells of its settings; nothing if it does not."""
    if isinstance(reply, dict):
        return {key.decode(): value.decode() for key, value in reply.items()}
    if not isinstance(reply, list):
        return {}
    return {key.decode(): value.decode() for key, value in zip(reply[::2], reply[1::2], strict=True)}


def _check(replies: Sequence[Any]) -> None:
    for reply in replies:
        if isinstance(reply, Error):
            raise Misconfigured(f"it refused: {reply}")
