"""What goes through the log, besides the requests of the key-value service: see `state`."""

from __future__ import annotations

from dataclasses import dataclass

from .auth import NOBODY, Identity
from .requests import DeleteRequest, PutRequest, Span, TxnRequest

ALARM_ACTIONS = ("GET", "ACTIVATE", "DEACTIVATE")
ALARMS = ("NONE", "NOSPACE", "CORRUPT")


NO_KEYS = Span(b"", b"")


@dataclass(frozen=True, slots=True)
class Compact:
    revision: int


@dataclass(frozen=True, slots=True)
class Grant:
    id: int
    ttl_s: int


@dataclass(frozen=True, slots=True)
class Revoke:
    id: int


@dataclass(frozen=True, slots=True)
class Alarm:
    action: int
    member: int
    alarm: int


@dataclass(frozen=True, slots=True)
class Authenticate:
    name: str
    password: str
    token: str


@dataclass(frozen=True, slots=True)
class Admin:
    """A change of users and roles; needs the role `root` once log-in is enabled."""

    what: str
    name: str = ""
    word: str = ""
    """A password, or a role."""
    span: Span = NO_KEYS
    permission: int = 0


@dataclass(frozen=True, slots=True)
class Nothing:
    """What a new leader begins its term with."""


Command = PutRequest | DeleteRequest | TxnRequest | Compact | Grant | Revoke | Alarm | Authenticate | Admin | Nothing


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry of the log."""

    index: int
    term: int
    command: Command
    who: Identity = NOBODY
    origin: int = -1
    """The member that proposed it, and which of its proposals this is: its client waits for it there."""
    proposal: int = 0
