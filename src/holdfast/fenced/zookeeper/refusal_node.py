"""Refusals in ZooKeeper: a node per fenced path under `/holdfast/refusals`, in the tree (chroot) of the user's client.

1. Its data is the count, and the last refusals, a line each. Two that write at once meet by the node's version; one of
   them reads again.
2. The requests have `TIMEOUT_S` each: a session that is lost in this moment must not hold the refusal back.
"""

from __future__ import annotations

from typing import Any

from ..refusal import LAST_COUNT, FenceRefusal, RefusalRecord, may_keep, not_kept
from .requests import means

ROOT = "/holdfast/refusals"
TRIES_COUNT = 3
TIMEOUT_S = 2.0


def node_of(path: str) -> str:
    """The node that keeps the refusals at a path.

    >>> node_of("/orders/7")
    '/holdfast/refusals/%2Forders%2F7'
    """
    from urllib.parse import quote  # not at the top: fences that refuse nothing need none

    return f"{ROOT}/{quote(path, safe='')}"


def keep_refusal(kind: str, client: Any, path: str, refusal: FenceRefusal) -> None:
    """Keep one refusal. Raises nothing."""
    if not may_keep(kind):
        return
    try:
        for _ in range(TRIES_COUNT):
            if _add(client, path, refusal):
                return
        not_kept(kind, path, "too many are refused at once")
    except Exception as error:  # noqa: BLE001  whatever kazoo raises: the refusal itself is what counts
        not_kept(kind, path, error if str(error) else type(error).__name__)


def _add(client: Any, path: str, refusal: FenceRefusal) -> bool:
    """False if somebody else was quicker."""
    node = node_of(path)
    try:
        data, stat = client.get_async(node).get(timeout=TIMEOUT_S)
    except Exception as error:
        if not means(error, "NoNodeError"):
            raise
        data = None
    try:
        if data is None:
            client.create_async(node, _data(1, (refusal,)), makepath=True).get(timeout=TIMEOUT_S)
        else:
            kept = record_of(path, data)
            client.set_async(node, _data(kept.count + 1, (refusal, *kept.last)), stat.version).get(timeout=TIMEOUT_S)
    except Exception as error:
        if not means(error, "NodeExistsError", "BadVersionError", "NoNodeError"):
            raise
        return False
    return True


def _data(count: int, last: tuple[FenceRefusal, ...]) -> bytes:
    return "\n".join([str(count), *(each.line() for each in last[:LAST_COUNT])]).encode()


def record_of(path: str, data: bytes) -> RefusalRecord:
    """What a node's data says."""
    count, *lines = data.decode().split("\n")
    return RefusalRecord(path, int(count), tuple(map(FenceRefusal.parse, lines)))
