"""Records: a version is never used again, and whoever writes has read the version that it writes over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.backends.record_requests import SwapRecord
from holdfast.record import Swapped

from ..violation import Violation

if TYPE_CHECKING:
    from ..world import World


class RecordInvariants:
    """What was written last to each key, as it was asked for and answered."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._versions: dict[str, int] = {}

    def swapped(self, request: SwapRecord, reply: Swapped) -> None:
        if not reply.done:
            return
        key, last = request.key, self._versions.get(request.key, 0)
        self._world.count("records written")
        version = last if reply.record is None else reply.record.version
        if version < last or (version == last and reply.record is not None):
            raise Violation("versions strictly grow", f"{key} went from version {last} to {version}")
        if request.expected and request.expected != last:
            raise Violation(
                "a write names what it replaces", f"{key} was at version {last}, and {request.expected} was replaced"
            )
        self._versions[key] = version
