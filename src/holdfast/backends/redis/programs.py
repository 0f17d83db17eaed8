"""The programs that run at the server, and how a call to one is written.

A call names its program by the hash of its source (EVALSHA). A server that does not know it, after a restart or a
flush, is sent the source once (EVAL), which also teaches it the hash. The rest of the call is the same in both.

Programs that renew or free run also where the server is full (`maxmemory` with `noeviction`): their first line says so
to Redis 7 and Valkey. Older servers cannot read that line: they are sent the program without it (`plain`), and refuse
every write while they are full.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.resources import files

from .resp import bulk

FULL = frozenset({"renew", "release", "releases", "evict", "recover", "touch_records"})
"""What a full server must not refuse: it would end every lease, and keep every name closed."""
ALLOW_FULL = "#!lua flags=allow-oom\n"

VERBS = ("take", "takes", "renew", "release", "releases", "survey", "evict", "recover", "allow")
RECORD_VERBS = ("read_records", "swap_record", "touch_records", "list_records")


@cache
def source(verb: str) -> str:
    """The source of a program, with what it includes."""
    folder = files(__package__) / "scripts"
    text = (folder / f"{verb}.lua").read_text("utf-8")
    return re.sub(r"^-- include (\w+)$", lambda found: source(found[1]), text, flags=re.MULTILINE)


class Program:
    """One program. `call(count)` is how a call with so many words after the program begins."""

    def __init__(self, text: str, plain: Program | None = None) -> None:
        self.source = text.encode()
        self.plain = plain
        """The same for a server that cannot read its first line, if it has such a line."""
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
    plain = Program(source(verb))
    return Program(ALLOW_FULL + source(verb), plain) if verb in FULL else plain
