"""What each program of `backends/redlock/scripts` does at a server: `quorum.node` decides, on this server's keys."""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping
from functools import partial

from ...quorum.node import NodeModel
from .glob import matches
from .key_commands import sorted_set
from .keyspace import KeyspaceEntry
from .protocol import ErrorReply, Reply
from .queue_lines import to_bytes, to_text
from .script_run import Model, Run

MARKS_AT = {"become": 0, "evict": 1, "extend": 0, "hello": 0, "leave": 0, "release": 1, "survey": 0, "take": 1}
"""Where the key of the marks stands among the keys of each program."""
WAITERS_MS = 4000


class Texts(MutableMapping[str, tuple[str, int | None]]):
    """The strings of a server, each with its expiry. What is written is what the programs write, command by command."""

    def __init__(self, run: Run, pattern: bytes) -> None:
        self._run = run
        self._pattern = pattern

    def _entry(self, key: str) -> KeyspaceEntry | None:
        entry = self._run.entry(to_bytes(key))
        if entry is not None and isinstance(entry.value, dict):
            raise ErrorReply("WRONGTYPE Operation against a key holding the wrong kind of value")
        return entry

    def __getitem__(self, key: str) -> tuple[str, int | None]:
        entry = self._entry(key)
        if entry is None or not isinstance(entry.value, bytes):
            raise KeyError(key)
        return to_text(entry.value), entry.expires_ms

    def __setitem__(self, key: str, kept: tuple[str, int | None]) -> None:
        text, expires_ms = kept
        before = self.get(key)
        if before == kept:
            return
        # A hold that stays what it was is kept with PEXPIRE, which a full server does not refuse.
        self._run.check("pexpire" if before is not None and before[0] == text else "set", key=to_bytes(key))
        self._run.server.keyspace.put((self._run.session.database, to_bytes(key)), to_bytes(text), expires_ms)

    def __delitem__(self, key: str) -> None:
        self._run.call(b"DEL", to_bytes(key))

    def __iter__(self) -> Iterator[str]:
        for key in self._run.server.keyspace.keys(self._run.session.database):
            if matches(self._pattern, key):
                yield to_text(key)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Scores(MutableMapping[str, int]):
    """A sorted set. `ms`: it ends by itself so long after the last change."""

    def __init__(self, run: Run, key: bytes, ms: int = 0) -> None:
        self._run = run
        self._key = key
        self._ms = ms

    def _members(self) -> dict[bytes, float]:
        return sorted_set(self._run.server, self._run.session, self._key)[0]

    def __getitem__(self, member: str) -> int:
        return int(self._members()[to_bytes(member)])

    def __setitem__(self, member: str, score: int) -> None:
        self._run.call(b"ZADD", self._key, b"%d" % score, to_bytes(member))
        if self._ms:
            self._run.call(b"ZREMRANGEBYSCORE", self._key, b"-inf", b"%d" % (self._run.now_us // 1000))
            self._run.call(b"PEXPIRE", self._key, b"%d" % self._ms)

    def __delitem__(self, member: str) -> None:
        if not self._run.call(b"ZREM", self._key, to_bytes(member)):
            raise KeyError(member)

    def __iter__(self) -> Iterator[str]:
        return map(to_text, self._members())

    def __len__(self) -> int:
        return len(self._members())

    def clear(self) -> None:
        self._run.call(b"UNLINK", self._key)


def _carry_out(verb: str, run: Run) -> Reply:
    if verb == "take":
        run.check("set", key=run.keys[0])  # it begins with SET NX
    marks = run.keys[MARKS_AT[verb]]
    node = NodeModel(run.server.run_id)
    args = tuple(map(to_text, run.args))
    node.texts = Texts(run, run.args[1] if verb == "survey" else b"*")
    if verb == "survey":
        args = (args[0], "*", *args[2:])  # `Texts` looks for the pattern, as Redis reads it
    node.marks = Scores(run, marks)
    node.waiting = Scores(run, marks + b"/waiters", WAITERS_MS)
    said = node.carry_out(verb, tuple(map(to_text, run.keys)), args, run.now_us)
    if verb == "survey" and isinstance(said, bytes) and said != b"A":
        return _as_cjson(said)
    return said


def _as_cjson(said: bytes) -> bytes:
    """JSON as the server's library writes it."""
    text = json.dumps(json.loads(said), separators=(",", ":"), ensure_ascii=False)
    return to_bytes(text.replace("/", "\\/").replace("\x7f", "\\u007f"))


MODELS: dict[str, Model] = {verb: partial(_carry_out, verb) for verb in MARKS_AT}
