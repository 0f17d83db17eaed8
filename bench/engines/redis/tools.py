"""`once` and actors beside commands on a raw socket: SET NX, SET XX and GET; RPUSH, and a transaction that handles."""

from __future__ import annotations

from bench.engines.redis import command, connect
from bench.measures import tools
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
            ask("SET", f"hand:{key}", tools.RESULT, "XX", "PX", KEEP_MS)

        def tell_and_handle() -> None:
            ask("RPUSH", "hand:inbox", "1")
            ask("LINDEX", "hand:inbox", 0)
            steps = (("MULTI",), ("LPOP", "hand:inbox"), ("INCRBY", "hand:state", 1), ("EXEC",))
            link.sendall(b"".join(command(*words) for words in steps))
            said = b""
            while said.count(b"\r\n") < 6:  # OK, QUEUED, QUEUED, and the replies of two
                said += link.recv(4096)

        by_hand = tools.OnceByHand(first, lambda key: ask("GET", f"hand:{key}"))
        return [*tools.once_figures(target, by_hand, quick), tools.tell_figure(target, tell_and_handle, quick)]
