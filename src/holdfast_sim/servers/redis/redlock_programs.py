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

MARKS_AT = {"become": 0, "evict": 1, "extend": 0, "hello": 0, "leave": 1, "release": 1, "survey": 0, "take": 1}
"""Where the key of the marks stands among the keys of each program."""


TAKE_ARGS_COUNT = 3
"""Of a take that is not a waiter's: it begins with the short way."""


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
        command = "set"
        if before is not None and before[0] == text:
            command = "pexpire"  # a hold that stays what it was: a full server does not refuse that
        elif before is not None and before[0] + "\n" == text:
            command = "append"
        self._run.check(command, key=to_bytes(key))
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
    """A sorted set."""

    def __init__(self, run: Run, key: bytes) -> None:
        self._run = run
        self._key = key

    def _members(self) -> dict[bytes, float]:
        return sorted_set(self._run.server, self._run.session, self._key)[0]

    def __getitem__(self, member: str) -> int:
        return int(self._members()[to_bytes(member)])

    def __setitem__(self, member: str, score: int) -> None:
        self._run.call(b"ZADD", self._key, b"%d" % score, to_bytes(member))

    def __delitem__(self, member: str) -> None:
        if not self._run.call(b"ZREM", self._key, to_bytes(member)):
            raise KeyError(member)

    def __iter__(self) -> Iterator[str]:
        return map(to_text, self._members())

    def __len__(self) -> int:
        return len(self._members())

    def clear(self) -> None:
        self._run.call(b"UNLINK", self._key)


class Waiters(Scores):
    """The same for those who wait: see `quorum.waiters`."""

    def _order(self) -> list[bytes]:
        members = self._members()
        return sorted(members, key=lambda member: (members[member], member))

    def first(self) -> str | None:
        return next(map(to_text, self._order()), None)

    def rank(self, member: str) -> int:
        return self._order().index(to_bytes(member))

    def score(self, member: str) -> int | None:
        return self.get(member)

    def add(self, member: str, score: int) -> None:
        self[member] = score

    def remove(self, member: str) -> int:
        return int(self._run.call(b"ZREM", self._key, to_bytes(member)) == 1)

    def remove_until(self, score: int) -> None:
        self._run.call(b"ZREMRANGEBYSCORE", self._key, b"-inf", b"%d" % score)

    def keep(self, ms: int) -> None:
        self._run.call(b"PEXPIRE", self._key, b"%d" % ms)

    def above(self, score: int) -> list[str]:
        return [to_text(member) for member in self._order() if self._members()[member] > score]


class ServerNode(NodeModel):
    """A node on the keys of a server."""

    def __init__(self, run: Run, marks: bytes, pattern: bytes) -> None:
        super().__init__(run.server.run_id, self._tell)
        self._run, self._marks_key = run, marks
        self.texts = Texts(run, pattern)
        self.marks = Scores(run, marks)
        self.waiting = Waiters(run, marks + b"/waiters")

    def line(self, key: str) -> Waiters:
        return Waiters(self._run, b"%b/line/%b" % (self._marks_key, to_bytes(key)))

    def _tell(self, channel: str, owner: str) -> int:
        try:
            heard = self._run.call(b"PUBLISH", to_bytes(channel), to_bytes(owner))
        except ErrorReply:  # this user may not
            return 0
        return heard if isinstance(heard, int) else 0


def _carry_out(verb: str, run: Run) -> Reply:
    if verb == "take" and len(run.args) == TAKE_ARGS_COUNT:
        run.check("set", key=run.keys[0])  # it begins with SET NX
    marks = run.keys[MARKS_AT[verb]]
    node = ServerNode(run, marks, run.args[1] if verb == "survey" else b"*")
    args = tuple(map(to_text, run.args))
    if verb == "survey":
        args = (args[0], "*", *args[2:])  # `Texts` looks for the pattern, as Redis reads it
    said = node.carry_out(verb, tuple(map(to_text, run.keys)), args, run.now_us)
    if verb == "survey" and isinstance(said, bytes) and said != b"A":
        return _as_cjson(said)
    return said


def _as_cjson(said: bytes) -> bytes:
    """JSON as the server's library writes it."""
    text = json.dumps(json.loads(said), separators=(",", ":"), ensure_ascii=False)
    return to_bytes(text.replace("/", "\\/").replace("\x7f", "\\u007f"))


MODELS: dict[str, Model] = {verb: partial(_carry_out, verb) for verb in MARKS_AT}
