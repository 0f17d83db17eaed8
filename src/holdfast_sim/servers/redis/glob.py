"""Patterns as Redis reads them: `*`, `?`, `[a-c]`, `[^x]`, and a backslash before what is to be taken as it is."""

from __future__ import annotations

import re
from functools import lru_cache


def matches(pattern: bytes, text: bytes) -> bool:
    return pattern == b"*" or _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    parts: list[bytes] = []
    at = 0
    while at < len(pattern):
        char = pattern[at : at + 1]
        end = pattern.find(b"]", at + 1)
        if char == b"*":
            parts.append(b".*")
        elif char == b"?":
            parts.append(b".")
        elif char == b"[" and end > 0:
            inside = pattern[at + 1 : end]
            negated = b"^" if inside.startswith(b"^") else b""
            body = inside[len(negated) :].replace(b"\\", b"\\\\")
            parts.append(b"[%b%b]" % (negated, body))
            at = end
        else:
            if char == b"\\" and at + 1 < len(pattern):
                at += 1
                char = pattern[at : at + 1]
            parts.append(re.escape(char))
        at += 1
    return re.compile(b"".join(parts), re.DOTALL)
