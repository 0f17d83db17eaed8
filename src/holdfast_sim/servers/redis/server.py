"""One Redis server: its sessions, its keys, its users, its programs, and how it is at the moment.

1. A request passes the same gates in the same order as at a real server (`admit`): is it a command, has it its words,
   is the user known, may the user do that, has this node the slot, is there memory, is this a primary, may it be said
   while subscribed, is the server busy or loading.
2. Times are its machine's calendar, as with Redis: when that jumps, expiries do.
3. A restart forgets sessions, subscriptions, programs that were sent and settings that were changed, and gets a new
   run id; users stand in a file and stay.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..model import Host, Memory, Output
from .acl import Users
from .cluster import ClusterNode
from .command_table import Command, known_commands, look_up
from .commands import HANDLERS, NO_REPLY
from .keyspace import Keyspace, KeyspaceEntry, Place
from .protocol import ErrorReply
from .replication import Replication
from .sentinel import Sentinel
from .session import RedisSession
from .settings import DEFAULTS, USED_BYTES
from .subscriptions import Subscriptions

SECOND_US = 1_000_000


class RedisServer:
    """`address` is where others find it, for what it tells of itself and of others."""

    def __init__(
        self,
        host: Host,
        *,
        address: tuple[str, int] = ("127.0.0.1", 6379),
        version: str = "7.0.15",
        settings: Mapping[str, str] | None = None,
        sentinel: Sentinel | None = None,
    ) -> None:
        self.host = host
        self.address = address
        self.version = version
        self.version_numbers = tuple(map(int, version.split(".")))
        self.sentinel = sentinel
        self._commands = known_commands(self.version_numbers, sentinel is not None)
        self._settings_file = {**DEFAULTS, **(settings or {})}
        self.users = Users()
        self.users.require(self._settings_file["requirepass"].encode())
        self.keyspace = Keyspace()
        self.subscriptions = Subscriptions()
        self.replication = Replication(self)
        self.cluster: ClusterNode | None = None
        self.loading = self.busy = False
        """It reads its file; a script has run for too long: most is refused."""
        self.running = False
        self._backup: dict[Place, KeyspaceEntry] = {}
        self._sessions: dict[RedisSession, None] = {}
        self._pending: list[RedisSession] = []
        self._numbers = 0
        self.start(Memory.ALL)

    # The machine

    def start(self, memory: Memory) -> None:
        if memory is not Memory.ALL:
            self.keyspace.restore({} if memory is Memory.NOTHING else self._backup)
        self.run_id = f"{self.host.chance.getrandbits(160):040x}"
        self.settings = dict(self._settings_file)
        self.scripts: dict[str, bytes] = {}
        self.subscriptions.clear()
        self.running = True
        self.replication.restarted()

    def stop(self) -> None:
        self.running = False
        for session in list(self._sessions):
            session.end()
        self._pending.clear()

    def back_up(self) -> None:
        self._backup = self.keyspace.snapshot()

    # Sessions

    def accept(self, output: Output) -> RedisSession:
        self._numbers += 1
        session = RedisSession(self, output, self._numbers)
        self._sessions[session] = None
        if not self.running:
            session.kill()
        return session

    def forget(self, session: RedisSession) -> None:
        self._sessions.pop(session, None)
        self.subscriptions.forget(session)
        self.replication.forget(session)

    def kill_sessions(self) -> None:
        for session in list(self._sessions):
            session.kill()

    def delete_user(self, name: str) -> None:
        user = self.users.by_name.pop(name)
        for session in [session for session in self._sessions if session.user is user]:
            session.kill()

    def has_pending(self, session: RedisSession) -> None:
        self._pending.append(session)

    def flush(self) -> None:
        while self._pending:
            self._pending.pop().flush()

    # Requests

    def now_us(self) -> int:
        return int(self.host.calendar() * SECOND_US)

    @property
    def full(self) -> bool:
        """Its memory is used up, and nothing is evicted."""
        return 0 < int(self.settings["maxmemory"]) < USED_BYTES

    @property
    def is_replica(self) -> bool:
        return self.replication.primary is not None

    def publish(self, channel: bytes, message: bytes) -> int:
        """Answers how many of this server's own sessions were told."""
        if self.cluster is not None:
            self.cluster.broadcast(channel, message)
        return self.subscriptions.publish(channel, message)

    def execute(self, session: RedisSession, words: list[bytes]) -> None:
        self.keyspace.at(self.now_us() // 1000, drop=not self.is_replica)
        asking, session.asking = session.asking, False
        try:
            command = look_up(words, self._commands)
            self.admit(session, command, words, asking)
            reply = HANDLERS[command.name](self, session, words)
        except ErrorReply as error:
            reply = error
        if reply is not NO_REPLY:
            session.write(reply)
        if changes := self.keyspace.commit():
            session.written_offset = self.replication.feed(changes)

    def admit(self, session: RedisSession, command: Command, words: list[bytes], asking: bool) -> None:
        """Rule 1. Raises what the server says instead of carrying the request out."""
        flags = command.flags
        if session.user is None:
            session.greet_stranger()
        if session.user is None and "noauth" not in flags:
            raise ErrorReply("NOAUTH Authentication required.")
        keys = command.keys(words)
        if session.user is not None and "noauth" not in flags:
            self.users.check(session.user, command.name, keys, command.channels(words))
        if self.cluster is not None:
            self.cluster.check(keys, asking)
        if self.full and "denyoom" in flags:
            raise ErrorReply("OOM command not allowed when used memory > 'maxmemory'.")
        self.check_write(flags)
        if session.only_listens and "pubsub" not in flags:
            raise ErrorReply(
                f"ERR Can't execute '{command.name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET "
                "are allowed in this context"
            )
        if self.replication.cut_off and self.settings["replica-serve-stale-data"] == "no" and "stale" not in flags:
            raise ErrorReply("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.")
        if self.loading and "loading" not in flags:
            raise ErrorReply("LOADING Redis is loading the dataset in memory")
        if self.busy and "busy" not in flags:
            raise ErrorReply("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")

    def check_write(self, flags: frozenset[str]) -> None:
        """Whether this server takes writes: also asked for what a program does."""
        if "write" not in flags:
            return
        if not self.is_replica and self.replication.good_followers() < int(self.settings["min-replicas-to-write"]):
            raise ErrorReply("NOREPLICAS Not enough good replicas to write.")
        if self.is_replica:
            raise ErrorReply("READONLY You can't write against a read only replica.")
