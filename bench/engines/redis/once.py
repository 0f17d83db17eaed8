"""`once` beside SET NX, SET XX and GET on a raw socket."""

from __future__ import annotations

from bench.engines.redis import command, connect
from bench.measures import once
from bench.model import Target
from bench.outcomes import Figure

CONTENDERS = ()
KEEP_MS = 3_600_000


def figures(target: Target, quick: bool) -> list[Figure]:
    with connect(target) as link:

        def ask(*words: object) -> bytes:
            link.sendall(command(*words))
            return link.recv(4096)

        def first(key: str) -> None:
            ask("SET", f"hand:{key}", "running", "NX", "PX", KEEP_MS)
            ask("SET", f"hand:{key}", once.RESULT, "XX", "PX", KEEP_MS)

        return once.figures(target, once.ByHand(first, lambda key: ask("GET", f"hand:{key}")), quick)
