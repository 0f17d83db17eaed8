"""Who stands in which line, as far as it is asked for.

One name is read directly. Names for which somebody waits are noted by the programs (`Codec.index`). Only a survey of
all names looks through the keys of the server, in steps that let others in between; and on a cluster, which has no
key for all nodes, so does one of the names for which somebody waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._core.flow import Flow
from ...model import LockView
from ..queue_backend import Survey
from .codec import Codec, Order
from .pool import RedisPool
from .resp import command

SCAN_COUNT = 1000


def survey(
    codec: Codec,
    request: Survey,
    pools: Sequence[RedisPool],
    together: bool,
    run: Callable[[Order], Flow[Any]],
    command_at: Callable[[RedisPool, bytes], Flow[Any]],
) -> Flow[list[LockView]]:
    """`together`: several keys may be read in one call, as they cannot where each has a slot of its own."""
    found: dict[str, LockView] = {}

    def read(keys: Sequence[bytes]) -> Flow[None]:
        for chunk in (keys[at : at + SCAN_COUNT] for at in range(0, len(keys), SCAN_COUNT)):
            for part in [chunk] if together else [[key] for key in chunk]:
                views: list[LockView] = yield from run(codec.survey(part))
                found.update((view.name, view) for view in views)

    if request.exact:
        yield from read([codec.line(request.prefix)])
    elif request.contended and codec.index is not None:
        noted: list[bytes] = yield from command_at(pools[0], command("ZRANGE", codec.index, 0, -1))
        yield from read([key for key in noted if key.startswith(codec.line(request.prefix))])
    else:
        for pool in pools:
            cursor = b"0"
            while True:
                words = ("SCAN", cursor, "MATCH", codec.pattern(request.prefix), "COUNT", SCAN_COUNT)
                cursor, keys = yield from command_at(pool, command(*words))
                yield from read(keys)
                if cursor == b"0":
                    break
    views = [view for view in found.values() if view.waiters or not request.contended]
    return sorted(views, key=lambda view: view.name)
