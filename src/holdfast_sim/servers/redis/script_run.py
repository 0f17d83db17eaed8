"""One run of a program: what it may do, and what the server says to what it may not.

A command in a program passes gates of its own: the user's rights, a full server (until the program has written), a
replica. An error ends the program; what it had written stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from . import key_commands
from .command_table import OF_PROGRAMS
from .keyspace import KeyspaceEntry
from .line_value import LineValue
from .protocol import ErrorReply, Reply

if TYPE_CHECKING:
    from .server import RedisServer
    from .session import RedisSession

OOM = "OOM command not allowed when used memory > 'maxmemory'."
MAY_NOT_RUN = "ERR The user executing the script can't run this command or subcommand"
MAY_NOT_ACCESS = (
    "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments"
)
MAY_NOT_PUBLISH = "ERR The user executing the script can't publish to the channel mentioned in the command"
NOT_WRITTEN = (
    *("OOM", "READONLY", "MISCONF", "NOREPLICAS", "NOPERM", "CLUSTERDOWN", "MASTERDOWN"),
    "user executing the script can't",
)


def refused_to_write(error: ErrorReply) -> bool:
    """What the programs of many (not_written.lua) take for a refusal that may pass."""
    return any(code in str(error) for code in NOT_WRITTEN)


class Run:
    """One run of a program: its words, its moment, and the commands that it may use."""

    def __init__(
        self, server: RedisServer, session: RedisSession, keys: list[bytes], args: list[bytes], allow_full: bool
    ) -> None:
        self.server = server
        self.session = session
        self.keys = keys
        self.args = args
        self.now_us = server.now_us()
        self._dirty = allow_full
        """It has written, so memory is not looked at again."""

    def call(self, *words: bytes) -> Reply:
        name = words[0].decode().lower()
        if name == "publish":
            self.check(name, channel=words[1])
            return self.server.publish(words[1], words[2])
        self.check(name, key=words[1])
        return key_commands.HANDLERS[name](self.server, self.session, list(words))

    def check(self, name: str, key: bytes | None = None, channel: bytes | None = None) -> None:
        """Raise what the server says to this command (rule 2)."""
        command, user = OF_PROGRAMS[name], self.session.user
        if user is not None:
            if not user.may_run(name):
                raise ErrorReply(MAY_NOT_RUN)
            if key is not None and not user.may_access(key):
                raise ErrorReply(MAY_NOT_ACCESS)
            if channel is not None and not user.may_use(channel):
                raise ErrorReply(MAY_NOT_PUBLISH)
        self.server.check_write(command.flags)
        if self.server.full and "denyoom" in command.flags and not self._dirty:
            raise ErrorReply(OOM)
        if "write" in command.flags:
            self._dirty = True

    def entry(self, key: bytes, by: str = "get") -> KeyspaceEntry | None:
        """GET, or its like."""
        self.check(by, key=key)
        return self.server.keyspace.get((self.session.database, key))

    def put(self, key: bytes, value: bytes | LineValue, ms: int | None) -> None:
        """SET. Without `ms` the expiry stays (KEEPTTL)."""
        self.check("set", key=key)
        place = (self.session.database, key)
        if ms is None:
            entry = self.server.keyspace.get(place)
            expires_ms = entry.expires_ms if entry is not None else None
        else:
            expires_ms = self.server.keyspace.now_ms + ms
        self.server.keyspace.put(place, value, expires_ms)


Model: TypeAlias = Callable[[Run], Reply]
