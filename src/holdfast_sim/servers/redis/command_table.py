"""Which commands there are: how many words each has, where its keys stand, and when it is refused.

Flags, as Redis names them: `write`; `denyoom` (refused by a full server); `loading`, `stale`, `busy` and `noauth`
(answered while the server loads, is a replica without its primary, runs a script for too long, does not know the user);
`pubsub` (may be said on a session of version 2 that has subscribed).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .protocol import ErrorReply


@dataclass(frozen=True)
class Command:
    """`arity` counts the command itself; a negative one is the least."""

    name: str
    arity: int
    words: str = ""
    first_key: int = 0
    last_key: int = 0

    @cached_property
    def flags(self) -> frozenset[str]:
        return frozenset(self.words.split())

    def keys(self, words: list[bytes]) -> list[bytes]:
        if self.name in ("eval", "evalsha"):
            count = int(words[2]) if words[2].isdigit() else 0
            return words[3 : 3 + count]
        if not self.first_key:
            return []
        last = self.last_key if self.last_key >= 0 else len(words) + self.last_key
        return words[self.first_key : last + 1]

    def channels(self, words: list[bytes]) -> list[bytes]:
        if self.name == "publish":
            return [words[1]]
        return words[1:] if self.name == "subscribe" else []


ANYTIME = "loading stale"
_ALL = (
    Command("acl|whoami", 2, ANYTIME),
    Command("asking", 1, ""),
    Command("auth", -2, f"{ANYTIME} noauth busy"),
    Command("client|getname", 2, ANYTIME),
    Command("client|id", 2, ANYTIME),
    Command("client|no-evict", 3, ANYTIME),
    Command("client|setname", 3, ANYTIME),
    Command("cluster|info", 2, ANYTIME),
    Command("cluster|myid", 2, ANYTIME),
    Command("cluster|slots", 2, ANYTIME),
    Command("config|get", -3, ANYTIME),
    Command("config|set", -4, ANYTIME),
    Command("dbsize", 1),
    Command("del", -2, "write", 1, -1),
    Command("echo", 2, ANYTIME),
    Command("eval", -3, "stale"),
    Command("evalsha", -3, "stale"),
    Command("exists", -2, "", 1, -1),
    Command("flushall", -1, "write"),
    Command("get", 2, "", 1, 1),
    Command("hello", -1, f"{ANYTIME} noauth busy"),
    Command("info", -1, ANYTIME),
    Command("pexpire", -3, "write", 1, 1),
    Command("ping", -1, "pubsub"),
    Command("pttl", 2, "", 1, 1),
    Command("publish", 3, ANYTIME),
    Command("quit", -1, f"{ANYTIME} noauth busy pubsub"),
    Command("reset", 1, f"{ANYTIME} noauth busy pubsub"),
    Command("role", 1, ANYTIME),
    Command("scan", -2),
    Command("script|exists", -3),
    Command("script|flush", -2),
    Command("script|load", 3, "stale"),
    Command("select", 2, ANYTIME),
    Command("set", -3, "write denyoom", 1, 1),
    Command("subscribe", -2, f"{ANYTIME} pubsub"),
    Command("time", 1, ANYTIME),
    Command("type", 2, "", 1, 1),
    Command("unlink", -2, "write", 1, -1),
    Command("unsubscribe", -1, f"{ANYTIME} pubsub"),
    Command("wait", 3),
    Command("zadd", -4, "write denyoom", 1, 1),
    Command("zrange", -4, "", 1, 1),
    Command("zrem", -3, "write", 1, 1),
    Command("zremrangebyscore", 4, "write", 1, 1),
    Command("zscore", 3, "", 1, 1),
)
COMMANDS = {command.name: command for command in _ALL}
_OF_PROGRAMS = (
    Command("append", 3, "write denyoom", 1, 1),
    Command("hdel", -3, "write", 1, 1),
    Command("hget", 3, "", 1, 1),
    Command("hgetall", 2, "", 1, 1),
    Command("hmget", -3, "", 1, 1),
    Command("hset", -4, "write denyoom", 1, 1),
    Command("mget", -2, "", 1, -1),
)
OF_PROGRAMS = COMMANDS | {command.name: command for command in _OF_PROGRAMS}
"""With those that only our programs use."""
SINCE_7_2 = {command.name: command for command in (Command("client|setinfo", 4, ANYTIME), Command("waitaof", 4))}
OF_SENTINEL = {
    name: COMMANDS[name]
    for name in COMMANDS
    if name.startswith(("acl|", "auth", "client|", "hello", "info", "ping", "publish", "quit", "reset", "role"))
    or name.endswith("subscribe")
} | {"sentinel|get-master-addr-by-name": Command("sentinel|get-master-addr-by-name", 3, ANYTIME)}
CONTAINERS = frozenset(name.partition("|")[0] for name in COMMANDS | OF_SENTINEL if "|" in name)


def known_commands(version: tuple[int, ...], sentinel: bool) -> dict[str, Command]:
    if sentinel:
        return OF_SENTINEL
    return COMMANDS | SINCE_7_2 if version >= (7, 2) else COMMANDS


def look_up(words: list[bytes], known: dict[str, Command]) -> Command:
    """The command of a request, or what the server says to a request that is none."""
    name = words[0].lower().decode("latin-1")
    shown = words[0].decode("latin-1")[:128]
    if name in CONTAINERS and any(each.startswith(f"{name}|") for each in known):
        if len(words) == 1:
            raise ErrorReply(f"ERR wrong number of arguments for '{name}' command")
        sub = words[1].decode("latin-1")
        command = known.get(f"{name}|{sub.lower()}")
        if command is None:
            raise ErrorReply(f"ERR unknown subcommand '{sub[:128]}'. Try {name.upper()} HELP.")
    else:
        command = known.get(name)
        if command is None:
            raise ErrorReply(f"ERR unknown command '{shown}', with args beginning with: {_shown(words[1:])}")
    count = len(words)
    if count != command.arity if command.arity > 0 else count < -command.arity:
        raise ErrorReply(f"ERR wrong number of arguments for '{command.name}' command")
    return command


def _shown(words: list[bytes]) -> str:
    text = ""
    for word in words:
        if len(text) >= 128:
            break
        text += f"'{word.decode('latin-1')[: 128 - len(text)]}' "
    return text
