"""What one member has made of the log: keys, leases, users, alarms.

1. `apply` depends on the state and the entry alone, so all members come to the same; only the clock of leases is a
   member's own (`leases`).
2. An entry that is refused changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from . import errors
from .auth import READ, ROOT, WRITE, AuthStore, EtcdUser, Identity, Tokens
from .commands import (
    ALARMS,
    Admin,
    Alarm,
    Authenticate,
    Command,
    Compact,
    Grant,
    LogEntry,
    Nothing,
    Revoke,
)
from .errors import RpcError
from .fields import Json, present
from .leases import Lessor
from .requests import DeleteRequest, PutRequest, Span, TxnRequest
from .store import Event, Store
from .txn import carry_out, delete, put

NO_SPACE_CODE = 1
Outcome = tuple[int, Json] | RpcError
"""The revision for the header (-1: without a header), and the rest of the reply; or a refusal."""


class State:
    def __init__(self, shortest_ttl_s: int) -> None:
        self.store = Store()
        self.lessor = Lessor(shortest_ttl_s)
        self.auth = AuthStore()
        self.alarms: list[tuple[int, int]] = []
        """Member and alarm."""

    def copy(self) -> State:
        """As it stands on the disk."""
        twin = State(0)
        twin.store, twin.lessor, twin.auth = self.store.copy(), self.lessor.copy(), self.auth.copy()
        twin.alarms = list(self.alarms)
        return twin

    def apply(self, entry: LogEntry, now: float, tokens: Tokens, tell: Callable[[list[Event]], None]) -> Outcome:
        """`tell` is told of what has changed before anybody is answered."""
        store = self.store
        store.begin()
        outcome: Outcome
        try:
            fields = self._carry_out(entry.command, entry.who, now, tokens)
        except RpcError as error:
            outcome = error
        else:
            outcome = (-1 if isinstance(entry.command, Alarm) else store.current, fields)
        changes = store.end()
        if changes:
            tell(changes)
        if isinstance(entry.command, Revoke) and not isinstance(outcome, RpcError):
            self.lessor.drop(entry.command.id)  # whoever waits for that is answered at the new revision
        return outcome

    def _carry_out(self, command: Command, who: Identity, now: float, tokens: Tokens) -> Json:
        match command:
            case PutRequest():
                self.auth.check_op(who, command)
                self._check_lease_keys(command.lease, who)
                self._check_space()
                return put(self.store, self.lessor, command)
            case DeleteRequest():
                self.auth.check_op(who, command)
                return delete(self.store, self.lessor, command)
            case TxnRequest():
                self.auth.check_txn(who, command)
                if command.puts:
                    self._check_space()
                return carry_out(self.store, self.lessor, command)
            case Compact():
                self.store.compact(command.revision)
            case Grant():
                self._check_space()
                lease = self.lessor.grant(command.id, command.ttl_s, now)
                return present(ID=lease.id, TTL=lease.ttl_s)
            case Revoke():
                self._check_lease_keys(command.id, who)
                for key in sorted(self.lessor.get(command.id).keys):
                    self.store.delete(Span(key, b""))
            case Alarm():
                return self._alarm(command)
            case Authenticate():
                tokens.assign(command.token, command.name, self.auth.revision, now)
                return {"token": command.token}
            case Admin():
                self.auth.check_admin(who)
                self._administer(command, tokens)
            case Nothing():
                pass
        return {}

    def _check_lease_keys(self, id_: int, who: Identity) -> None:
        """Who may not write all keys of a lease may not use it."""
        lease = self.lessor.leases.get(id_)
        for key in lease.keys if lease else ():
            self.auth.check(who, Span(key, b""), WRITE)

    def _check_space(self) -> None:
        if any(alarm == NO_SPACE_CODE for _, alarm in self.alarms):
            raise errors.NO_SPACE

    def _alarm(self, command: Alarm) -> Json:
        each = (command.member, command.alarm)
        shown = [each]
        if command.action == 0:
            shown = [found for found in self.alarms if command.alarm in (0, found[1])]
        elif command.action == 1 and each not in self.alarms:
            self.alarms.append(each)
        elif command.action == 2:
            shown = [each] if each in self.alarms else []
            self.alarms = [found for found in self.alarms if found != each]
        alarms = [present(memberID=member, alarm=ALARMS[alarm]) for member, alarm in shown]
        return present(alarms=alarms)

    def _administer(self, command: Admin, tokens: Tokens) -> None:
        auth, name, word = self.auth, command.name, command.word
        match command.what:
            case "enable":
                auth.enable()
            case "disable":
                auth.enabled = False
                tokens.forget()
            case "user/add":
                if name in auth.users:
                    raise errors.USER_EXISTS
                auth.users[name] = EtcdUser(word)
            case "user/changepw":
                auth.user(name).password = word
                tokens.forget(name)
            case "user/delete":
                auth.user(name)
                del auth.users[name]
                tokens.forget(name)
            case "user/grant":
                if word != ROOT and word not in auth.roles:
                    raise errors.ROLE_NOT_FOUND
                auth.user(name).roles.add(word)
                tokens.forget(name)
            case "role/add":
                if name in auth.roles:
                    raise errors.ROLE_EXISTS
                auth.roles[name] = []
            case "role/grant":
                if name not in auth.roles:
                    raise errors.ROLE_NOT_FOUND
                auth.roles[name].append((command.span, command.permission))
        if command.what not in ("enable", "disable"):
            auth.revision += 1

    def check_read(self, who: Identity, span: Span) -> None:
        self.auth.check(who, span, READ)
