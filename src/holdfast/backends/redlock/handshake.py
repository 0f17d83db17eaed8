"""What is said first on a connection to a node, as bytes: can it keep what it says, does it remember; and the programs.

A node that may evict keys cannot keep marks, and is not used. A connection never outlives a run of its server, so that
a restart is noticed here, before the first vote (see `scripts/hello.lua`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import Misconfigured
from ..redis.handshake import HELLO
from ..redis.resp import Error, Reply, bulk, command
from .fanout import EVERYBODY, Fanout
from .programs import HOT, frame_with_source, program


@dataclass(frozen=True, slots=True)
class Handshake:
    """What every node is told: where its marks are, for how long leases may last, and where we listen."""

    marks: str
    longest_us: int
    channel: str

    def questions(self) -> list[bytes]:
        """Asked first, all in one write."""
        loads = [b"*3\r\n" + bulk(b"SCRIPT") + bulk(b"LOAD") + bulk(program(verb).source) for verb in HOT]
        return [HELLO, command("CONFIG", "GET", "append*"), command("CONFIG", "GET", "maxmemory*"), *loads]

    def hello(self, replies: Sequence[Reply], nonce: str) -> bytes:
        """What comes after these replies; `nonce` is new for each. `Misconfigured`: this node cannot be used."""
        appending, memory = _settings(replies[1]), _settings(replies[2])
        for reply in replies[3:]:
            check(reply)
        policy = memory.get("maxmemory-policy", "noeviction")
        if policy != "noeviction" and memory.get("maxmemory", "0") != "0":
            raise Misconfigured(f"it evicts keys (maxmemory-policy {policy}), and locks with them; set noeviction")
        durable = appending.get("appendonly") == "yes" and appending.get("appendfsync") == "always"
        args = (nonce, f"{self.longest_us:016d}", str(int(durable)))
        return frame_with_source(Fanout("hello", (self.marks,), args, EVERYBODY))


def check(reply: Reply) -> None:
    if isinstance(reply, Error):
        raise Misconfigured(f"it refused: {reply}")


def _settings(reply: Reply) -> dict[str, str]:
    """What the node tells of its settings; nothing if it does not."""
    if isinstance(reply, dict):
        return {key.decode(): value.decode() for key, value in reply.items()}
    if not isinstance(reply, list):
        return {}
    return {key.decode(): value.decode() for key, value in zip(reply[::2], reply[1::2], strict=True)}
