"""Users: their passwords, and what they may do.

1. A session stays logged in when its user's password is changed or its user is switched off; only new log-ins fail.
2. A user that is deleted takes its sessions with it.
3. `requirepass` is the password of the user `default`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .glob import matches
from .protocol import ErrorReply

WRONG_PASSWORD = "WRONGPASS invalid username-password pair or user is disabled."
NO_PASSWORD = (
    "ERR AUTH <password> called without any password configured for the default user. "
    "Are you sure your configuration is correct?"
)


@dataclass
class User:
    """`commands` is None for all; subcommands are written `config|get`."""

    name: str
    passwords: set[bytes] = field(default_factory=set)
    no_password: bool = False
    on: bool = True
    commands: frozenset[str] | None = None
    keys: tuple[bytes, ...] = (b"*",)
    channels: tuple[bytes, ...] = (b"*",)

    def may_run(self, command: str) -> bool:
        return self.commands is None or command in self.commands or command.partition("|")[0] in self.commands

    def may_access(self, key: bytes) -> bool:
        return any(matches(pattern, key) for pattern in self.keys)

    def may_use(self, channel: bytes) -> bool:
        return any(matches(pattern, channel) for pattern in self.channels)


class Users:
    """The access control list of one server."""

    def __init__(self) -> None:
        self.by_name: dict[str, User] = {}
        self.reset()

    def reset(self) -> None:
        self.by_name = {"default": User("default", no_password=True)}

    @property
    def default(self) -> User:
        return self.by_name["default"]

    def require(self, password: bytes) -> None:
        """CONFIG SET requirepass: rule 3."""
        self.default.passwords = {password} if password else set()
        self.default.no_password = not password

    def log_in(self, name: str, password: bytes) -> User:
        user = self.by_name.get(name)
        if user is None or not user.on or not (user.no_password or password in user.passwords):
            raise ErrorReply(WRONG_PASSWORD)
        return user

    def check(self, user: User, command: str, keys: list[bytes], channels: list[bytes]) -> None:
        """Raise what the server says to a request that this user may not make."""
        if not user.may_run(command):
            raise ErrorReply(f"NOPERM this user has no permissions to run the '{command}' command")
        if not all(map(user.may_access, keys)):
            raise ErrorReply("NOPERM this user has no permissions to access one of the keys used as arguments")
        if not all(map(user.may_use, channels)):
            raise ErrorReply("NOPERM this user has no permissions to access one of the channels used as arguments")
