"""Users, roles and permissions: replicated. Tokens: in the memory of each member.

1. A user with the role `root` may do everything; any other what the permissions of its roles cover as a whole.
2. etcd 3.4 does not look into transactions within transactions, and keep-alives, lists of leases and the status of a
   member are for everybody: so it is here.
3. A simple token lasts for its time after its last use, is forgotten when its member starts again, and when its user's
   password or roles change. A signed token (JWT) lasts for its time after its making, wherever, and no longer than any
   user or role stays as it is: after that it is "old".
"""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from random import Random

from . import errors
from .requests import DeleteRequest, Op, PutRequest, RangeRequest, Span, TxnRequest

READ, WRITE, READWRITE = range(3)
PERMISSIONS = ("READ", "WRITE", "READWRITE")
ROOT = "root"
TOKEN_LETTERS_COUNT = 16


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks: nobody in particular, if the name is empty."""

    user: str = ""
    revision: int = 0


NOBODY = Identity()


@dataclass(slots=True)
class EtcdUser:
    password: str
    roles: set[str] = field(default_factory=set)


class AuthStore:
    """The replicated part."""

    def __init__(self) -> None:
        self.enabled = False
        self.revision = 1
        self.users: dict[str, EtcdUser] = {}
        self.roles: dict[str, list[tuple[Span, int]]] = {}

    def copy(self) -> AuthStore:
        twin = AuthStore()
        twin.enabled, twin.revision = self.enabled, self.revision
        twin.users = {name: EtcdUser(user.password, set(user.roles)) for name, user in self.users.items()}
        twin.roles = {name: list(permissions) for name, permissions in self.roles.items()}
        return twin

    def check(self, who: Identity, span: Span, wanted: int) -> None:
        if not self.enabled:
            return
        if who.revision == 0:
            raise errors.USER_EMPTY
        if who.revision < self.revision:
            raise errors.OLD_REVISION
        user = self.users.get(who.user)
        if user is None or not (ROOT in user.roles or self._covers(user, span, wanted)):
            raise errors.PERMISSION_DENIED

    def _covers(self, user: EtcdUser, span: Span, wanted: int) -> bool:
        """Whether one stretch of what is permitted holds all of it: permissions that touch are one stretch."""
        allowed = sorted(
            (each.key, each.end)
            for role in user.roles
            for each, kind in self.roles.get(role, [])
            if kind in (wanted, READWRITE)
        )
        if not span.end:
            return any(span.key in Span(*each) for each in allowed)
        reached = span.key
        for key, end in allowed:
            if end and key <= reached:
                if end == b"\0":
                    return True
                reached = max(reached, end)
        return span.end != b"\0" and reached >= span.end

    def check_op(self, who: Identity, op: Op) -> None:
        match op:
            case RangeRequest(span):
                self.check(who, span, READ)
            case PutRequest(key):
                self.check(who, Span(key, b""), WRITE)
                if op.prev_kv:
                    self.check(who, Span(key, b""), READ)
            case DeleteRequest(span):
                self.check(who, span, WRITE)
                if op.prev_kv:
                    self.check(who, span, READ)
            case _:
                pass  # see rule 2

    def check_txn(self, who: Identity, txn: TxnRequest) -> None:
        for compare in txn.compare:
            self.check(who, compare.span, READ)
        for op in txn.success + txn.failure:
            self.check_op(who, op)

    def check_admin(self, who: Identity) -> None:
        if not self.enabled:
            return
        if not who.user:
            raise errors.USER_EMPTY
        user = self.users.get(who.user)
        if user is None or ROOT not in user.roles:
            raise errors.PERMISSION_DENIED

    def enable(self) -> None:
        if self.enabled:
            return
        user = self.users.get(ROOT)
        if user is None:
            raise errors.ROOT_USER_NOT_EXIST
        if ROOT not in user.roles:
            raise errors.ROOT_ROLE_NOT_EXIST
        self.enabled = True

    def user(self, name: str) -> EtcdUser:
        if name not in self.users:
            raise errors.USER_NOT_FOUND
        return self.users[name]


@dataclass(slots=True)
class _Token:
    user: str
    expires: float
    revision: int


class Tokens:
    """One member's: see rule 3."""

    def __init__(self, ttl_s: float, signed: bool) -> None:
        self._ttl_s, self._signed = ttl_s, signed
        self._tokens: dict[str, _Token] = {}

    def assign(self, token: str, user: str, revision: int, now: float) -> None:
        self._tokens[token] = _Token(user, now + self._ttl_s, revision)

    def identify(self, token: str, now: float, revision: int) -> Identity:
        if not token:
            return NOBODY
        found = self._tokens.get(token)
        if found is None or found.expires <= now:
            raise errors.INVALID_TOKEN
        if self._signed:
            return Identity(found.user, found.revision)
        found.expires = now + self._ttl_s
        return Identity(found.user, revision)

    def forget(self, user: str | None = None) -> None:
        """Those of a user, or all. A signed token cannot be taken back."""
        if not self._signed:
            self._tokens = {text: each for text, each in self._tokens.items() if user is not None and each.user != user}


def new_token(chance: Random, index: int) -> str:
    return "".join(chance.choice(string.ascii_letters) for _ in range(TOKEN_LETTERS_COUNT)) + f".{index}"
