"""The programs that run at the server, and how a call to one is written.

A call names its program by the hash of its source (EVALSHA). A server that does not know it, after a restart or a
flush, is sent the source once (EVAL), which also teaches it the hash. The rest of the call is the same in both.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.resources import files

from .resp import bulk

VERBS = ("take", "takes", "renew", "release", "releases", "survey", "evict", "allow")


@cache
def source(verb: str) -> str:
    """The source of a program, with what it includes."""
    folder = files(__package__) / "scripts"
    text = (folder / f"{verb}.lua").read_text("utf-8")
    return re.sub(r"^-- include (\w+)$", lambda found: source(found[1]), text, flags=re.MULTILINE)


class Program:
    """One program. `call(count)` is how a call with so many words after the program begins."""

    def __init__(self, text: str) -> None:
        self.source = text.encode()
        self.sha = hashlib.sha1(self.source, usedforsecurity=False).hexdigest().encode()
        self._calls: dict[int, bytes] = {}

    def call(self, count: int) -> bytes:
        if (start := self._calls.get(count)) is None:
            start = self._calls[count] = b"*%d\r\n$7\r\nEVALSHA\r\n%b" % (count + 2, bulk(self.sha))
        return start

    def call_with_source(self, count: int) -> bytes:
        """The same call, for a server that does not know the program."""
        return b"*%d\r\n$4\r\nEVAL\r\n%b" % (count + 2, bulk(self.source))


@cache
def program(verb: str) -> Program:
    return Program(source(verb))
