"""Bugs of a fence."""

from __future__ import annotations

from holdfast.errors import FenceRejected

from .. import resource
from .registry import Patch, bug


@bug("the fence loses nothing")
def check_on_write_fence(patch: Patch) -> None:
    """The fence compares tokens when it is written to, and not when it is claimed (43)."""

    def claim(self: resource.Fenced, token: int) -> int:
        return self.value

    def write(self: resource.Fenced, token: int, value: int) -> None:
        if token < self.mark:
            raise FenceRejected(self.name, token, self.mark)
        self.mark, self.value = token, value

    patch(resource.Fenced, "claim", claim)
    patch(resource.Fenced, "write", write)
