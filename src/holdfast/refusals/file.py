"""Refusals at fenced files: beside one file, or beside all files of a folder."""

from __future__ import annotations

import os

from ..errors import Misconfigured
from ..fenced.refusal import RefusalRecord
from ..fenced.refusal_store import SUFFIX, read_beside


def read(path: str) -> list[RefusalRecord]:
    path = os.path.realpath(path)
    if os.path.isdir(path):
        names = sorted(name for name in os.listdir(path) if name.endswith(SUFFIX))
        return [record for name in names for record in read_beside(os.path.join(path, name.removesuffix(SUFFIX)))]
    if not any(map(os.path.lexists, (path, path + SUFFIX, f"{path}.fence"))):
        raise Misconfigured(f"there is no file {path!r}, and no fence beside it; name a fenced file or its folder")
    return read_beside(path.removesuffix(SUFFIX))
