"""Plain commands: what each does and answers. Programs are in `script_runner`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from . import connection_commands, key_commands, script_runner
from .glob import matches
from .protocol import ErrorReply, Reply, Status
from .replication import ReplicaWaiter

if TYPE_CHECKING:
    from .server import RedisServer
    from .session import RedisSession

OK: Final = Status("OK")
NO_REPLY: Final = Status("")
"""The handler has written by itself, or will."""
Handler: TypeAlias = "Callable[[RedisServer, RedisSession, list[bytes]], Reply]"


def info(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    """The fields that clients read, in the sections where they stand; all of them if no section is named."""
    replication = server.replication
    sections = {
        "server": {
            "redis_version": server.version,
            "redis_mode": "cluster" if server.cluster is not None else "standalone",
            "run_id": server.run_id,
            "tcp_port": str(server.address[1]),
        },
        "replication": {
            "role": "slave" if server.is_replica else "master",
            "connected_slaves": str(replication.good_followers()),
            "master_repl_offset": str(replication.offset),
        },
    }
    named = {word.decode("latin-1").lower() for word in words[1:]}
    if named and not named & {"all", "default", "everything"}:
        sections = {name: fields for name, fields in sections.items() if name in named}
    parts = []
    for name, fields in sections.items():
        lines = "".join(f"{field}:{value}\r\n" for field, value in fields.items())
        parts.append(f"# {name.capitalize()}\r\n{lines}")
    return "\r\n".join(parts).encode()


def config_get(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    patterns = [word.lower() for word in words[2:]]
    found = {name: value for name, value in server.settings.items() if any(matches(p, name.encode()) for p in patterns)}
    return {name.encode(): value.encode() for name, value in found.items()}


def config_set(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    if len(words) % 2:
        raise ErrorReply("ERR wrong number of arguments for 'config|set' command")
    pairs = [(words[at].decode("latin-1"), words[at + 1].decode("latin-1")) for at in range(2, len(words), 2)]
    for name, value in pairs:
        if name.lower() not in server.settings:
            raise ErrorReply(f"ERR Unknown option or number of arguments for CONFIG SET - '{name}'")
        server.settings[name.lower()] = value
        if name.lower() == "requirepass":
            server.users.require(value.encode())
    return OK


def role(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    replication = server.replication
    if (primary := replication.primary) is not None:
        host, port = primary.address
        state = b"connect" if replication.cut_off else b"connected"
        return [b"slave", host.encode(), port, state, replication.offset]
    replicas: list[Reply] = [
        [link.replica.address[0].encode(), b"%d" % link.replica.address[1], b"%d" % link.acknowledged]
        for link in replication.links
        if link.up
    ]
    return [b"master", replication.offset, replicas]


def wait(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    if server.is_replica:
        raise ErrorReply(
            "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is "
            "configured to be writable (which is not the default) writes to replicas are just local and are not "
            "propagated."
        )
    return _wait(server, ReplicaWaiter(session, 0, _integer(words[1]), session.written_offset, False), words[2])


def wait_aof(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    if server.is_replica:
        raise ErrorReply(
            "ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas are just "
            "local and are not propagated."
        )
    local = _integer(words[1])
    if not 0 <= local <= 1:
        raise ErrorReply("ERR value is out of range, must be between 0 and 1")
    if local and server.settings["appendonly"] != "yes":
        raise ErrorReply("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.")
    return _wait(server, ReplicaWaiter(session, local, _integer(words[2]), session.written_offset, True), words[3])


def _wait(server: RedisServer, waiter: ReplicaWaiter, timeout: bytes) -> Reply:
    try:
        timeout_ms = int(timeout)
    except ValueError:
        raise ErrorReply("ERR timeout is not an integer or out of range") from None
    if timeout_ms < 0:
        raise ErrorReply("ERR timeout is negative")
    replication = server.replication
    return NO_REPLY if replication.wait(waiter, timeout_ms) else replication.reply(waiter)


def _integer(word: bytes) -> int:
    try:
        return int(word)
    except ValueError:
        raise ErrorReply("ERR value is not an integer or out of range") from None


def publish(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    return server.publish(words[1], words[2])


def subscribe(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    server.subscriptions.subscribe(session, words[1:])
    return NO_REPLY


def unsubscribe(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    server.subscriptions.unsubscribe(session, words[1:])
    return NO_REPLY


def server_time(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    seconds, micros = divmod(server.now_us(), 1_000_000)
    return [b"%d" % seconds, b"%d" % micros]


def asking(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    if server.cluster is None:
        raise ErrorReply("ERR This instance has cluster support disabled")
    session.asking = True
    return OK


def of_cluster(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    if server.cluster is None:
        raise ErrorReply("ERR This instance has cluster support disabled")
    return server.cluster.answer(words[1].lower())


def primary_address(server: RedisServer, session: RedisSession, words: list[bytes]) -> Reply:
    assert server.sentinel is not None
    return server.sentinel.address_of(words[2])


HANDLERS: Final[dict[str, Handler]] = {
    "asking": asking,
    "cluster|info": of_cluster,
    "cluster|myid": of_cluster,
    "cluster|slots": of_cluster,
    "config|get": config_get,
    "config|set": config_set,
    "info": info,
    "publish": publish,
    "role": role,
    "sentinel|get-master-addr-by-name": primary_address,
    "subscribe": subscribe,
    "time": server_time,
    "unsubscribe": unsubscribe,
    "wait": wait,
    "waitaof": wait_aof,
    **connection_commands.HANDLERS,
    **key_commands.HANDLERS,
    **script_runner.HANDLERS,
}
