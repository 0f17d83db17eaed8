"""The unary calls of the gateway: from a path and a body to an outcome.

The order of what is refused first is etcd's: a body that cannot be read, a message too large, a malformed request, who
asks, and then whatever carrying it out comes to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from . import auth, commands, errors
from .commands import Admin, Alarm, Authenticate, Command, Compact, Grant, Revoke
from .errors import RpcError
from .fields import Fields, present, read_message, read_messages
from .http import HttpRequest
from .requests import (
    PutRequest,
    Span,
    TxnRequest,
    check,
    check_overlaps,
    delete_request,
    put_request,
    range_request,
    txn_request,
)
from .state import NO_SPACE_CODE, Outcome
from .txn import carry_out

if TYPE_CHECKING:
    from .leases import Lease
    from .member import EtcdMember

__all__ = ["KEEP_ALIVE", "PATHS", "WATCH", "Fields", "call", "check_read", "present", "read_messages"]

WATCH, KEEP_ALIVE = "/v3/watch", "/v3/lease/keepalive"
OVERHEAD_BYTES = 512 * 1024
"""By so much a message may be longer than the longest request, before gRPC itself refuses it."""
Answer = Callable[[Outcome], None]


class Call:
    """One call, and what its handler needs."""

    def __init__(self, member: EtcdMember, request: HttpRequest, answer: Answer) -> None:
        self.member, self.answer = member, answer
        self.fields = read_message(request.body)
        self._token = request.token

    def who(self) -> auth.Identity:
        return identify(self.member, self._token)

    def propose(self, command: Command) -> None:
        size = _size(command)
        longest = self.member.cluster.settings.max_request_bytes
        if size > longest + OVERHEAD_BYTES:
            raise errors.message_too_large(size, longest + OVERHEAD_BYTES)
        who = self.who()
        if size > longest:
            raise errors.TOO_LARGE
        self.member.propose(command, who, self.answer)

    def read(self, look: Callable[[], Outcome], serializable: bool = False) -> None:
        """Have `look` called once this member is up to date, or at once."""

        def ready(error: RpcError | None) -> None:
            try:
                outcome = look() if error is None else error
            except RpcError as refusal:
                outcome = refusal
            self.answer(outcome)

        if serializable:
            ready(None)
        else:
            self.member.reads.ask(ready)


def call(member: EtcdMember, request: HttpRequest, answer: Answer) -> None:
    try:
        _HANDLERS[request.path](Call(member, request, answer))
    except RpcError as error:
        answer(error)


def identify(member: EtcdMember, token: str) -> auth.Identity:
    return member.tokens.identify(token, member.now(), member.state.auth.revision)


def check_read(member: EtcdMember, token: str, span: Span) -> None:
    member.state.check_read(identify(member, token), span)


def _size(command: Command) -> int:
    """About what it is as a protobuf: what the keys and values of its puts come to."""
    if isinstance(command, PutRequest):
        return sum(1 + _varint(len(each)) + len(each) for each in (command.key, command.value) if each)
    if isinstance(command, TxnRequest):
        return sum(_size(op) for op in command.success + command.failure if isinstance(op, PutRequest | TxnRequest))
    return 0


def _varint(number: int) -> int:
    return max(1, (number.bit_length() + 6) // 7)


def _range(call: Call) -> None:
    request = range_request(call.fields)
    check(request)

    def look() -> Outcome:
        state = call.member.state
        state.check_read(call.who(), request.span)
        found = state.store.range(request)
        return found.revision, found.shown()

    call.read(look, request.serializable)


def _put(call: Call) -> None:
    request = put_request(call.fields)
    check(request)
    call.propose(request)


def _delete(call: Call) -> None:
    request = delete_request(call.fields)
    check(request)
    call.propose(request)


def _txn(call: Call) -> None:
    request = txn_request(call.fields)
    check(request)
    check_overlaps(request.success)
    check_overlaps(request.failure)
    if not request.read_only:
        call.propose(request)
        return

    def look() -> Outcome:
        state = call.member.state
        state.auth.check_txn(call.who(), request)
        return state.store.revision, carry_out(state.store, state.lessor, request)

    call.read(look, request.serializable)


def _grant(call: Call) -> None:
    id_ = call.fields.number("ID") or call.member.host.chance.getrandbits(63)
    call.propose(Grant(id_, call.fields.number("TTL")))


def _time_to_live(call: Call) -> None:
    id_, keys = call.fields.number("ID"), call.fields.flag("keys")

    def answer(lease: Lease | None, left: int) -> None:
        names = sorted(lease.keys) if lease and keys else []
        granted = lease.ttl_s if lease else 0
        encoded = [present(key=key)["key"] for key in names]
        fields = present(ID=id_, TTL=left, grantedTTL=granted, keys=encoded)
        call.answer((call.member.state.store.revision, fields))

    call.member.forwarder.time_to_live(id_, answer, call.answer)


def _leases(call: Call) -> None:
    leases = sorted(call.member.state.lessor.leases.values(), key=lambda lease: lease.expires)
    call.answer((call.member.state.store.revision, present(leases=[{"ID": str(lease.id)} for lease in leases])))


def _status(call: Call) -> None:
    member = call.member
    index = member.cluster.unlogged_count + member.applied
    alarms = [f"memberID:{of} alarm:NOSPACE " for of, alarm in member.state.alarms if alarm == NO_SPACE_CODE]
    found = ["etcdserver: no leader"] if member.lead is None else []
    fields = present(
        version=member.cluster.settings.version,
        dbSize=32768,
        leader=0 if member.lead is None else member.lead.id,
        raftIndex=index,
        raftTerm=member.term,
        raftAppliedIndex=index,
        errors=found + alarms,
        dbSizeInUse=24576,
    )
    call.answer((member.state.store.revision, fields))


def _alarm(call: Call) -> None:
    fields = call.fields
    action, alarm = fields.choice("action", commands.ALARM_ACTIONS), fields.choice("alarm", commands.ALARMS)
    call.propose(Alarm(action, fields.number("memberID"), alarm))


def _authenticate(call: Call) -> None:
    name, password = call.fields.text("name"), call.fields.text("password")
    member = call.member

    def ready(error: RpcError | None) -> None:
        store = member.state.auth
        if error is None and not store.enabled:
            error = errors.AUTH_NOT_ENABLED
        user = store.users.get(name)
        if error is None and (user is None or user.password != password):
            error = errors.AUTH_FAILED
        try:
            if error is not None:
                raise error
            token = auth.new_token(member.host.chance, member.cluster.unlogged_count + member.applied)
            call.propose(Authenticate(name, password, token))
        except RpcError as refusal:
            call.answer(refusal)

    member.reads.ask(ready)


def _admin(what: str) -> Callable[[Call], None]:
    def handle(call: Call) -> None:
        fields, permission = call.fields, call.fields.message("perm")
        call.propose(
            Admin(
                what,
                fields.text("name") or fields.text("user"),
                fields.text("password") or fields.text("role"),
                Span(permission.data("key"), permission.data("range_end")),
                permission.choice("permType", auth.PERMISSIONS),
            )
        )

    return handle


_HANDLERS: dict[str, Callable[[Call], None]] = {
    "/v3/kv/range": _range,
    "/v3/kv/put": _put,
    "/v3/kv/deleterange": _delete,
    "/v3/kv/txn": _txn,
    "/v3/kv/compaction": lambda call: call.propose(Compact(call.fields.number("revision"))),
    "/v3/lease/grant": _grant,
    "/v3/lease/revoke": lambda call: call.propose(Revoke(call.fields.number("ID"))),
    "/v3/lease/timetolive": _time_to_live,
    "/v3/lease/leases": _leases,
    "/v3/maintenance/status": _status,
    "/v3/maintenance/alarm": _alarm,
    "/v3/auth/authenticate": _authenticate,
}
for _what in ("enable", "disable", "user/add", "user/changepw", "user/delete", "user/grant", "role/add", "role/grant"):
    _HANDLERS[f"/v3/auth/{_what}"] = _admin(_what)
PATHS = frozenset(_HANDLERS) | {WATCH, KEEP_ALIVE}
