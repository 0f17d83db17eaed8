"""What can go wrong with a simulated MariaDB, played without a real one: restarts, fail-over, full, read-only.

What real servers do in these cases was looked at once, on the version that Debian ships (see the model's docstrings).
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from holdfast.backends.mysql import codec as mysql_codec
from holdfast.backends.mysql.capabilities import META, SHOW_LIFE
from holdfast.backends.mysql.packets import QueryReply, RowsReader, query
from holdfast.backends.mysql.programs import schema, statements
from holdfast.backends.mysql.session.codec import SessionCodec
from holdfast.backends.queue_backend import QueueRequest, Release, Survey, Take
from holdfast.model import Claim, LockSpec
from holdfast_sim.servers.model import Memory
from holdfast_sim.servers.mysql.login import scrambled
from holdfast_sim.servers.mysql.server import MariaDBServer
from holdfast_sim.servers.mysql.session import MariaDBSession
from holdfast_sim.servers.relational.statement_runner import ServerError
from tests.likeness.mysql_play import FLAGS, salt_of, split
from tests.likeness.play import Recorder
from tests.likeness.virtual import VirtualTime

CLAIM = Claim(LockSpec("a", ttl=16.0), "o1", "actor")
OTHER = Claim(LockSpec("a", ttl=16.0), "o2", "actor")


class Client:
    """A client of the model, as simple as can be: every order goes the way of the procedures."""

    def __init__(self, server: MariaDBServer, user: str = "root", password: str = "") -> None:
        self.host = server.host
        self.output = Recorder()
        session = server.accept(self.output)
        assert isinstance(session, MariaDBSession)
        self.session = session
        [(_, hello)] = split(bytes(self.output.data))[0]
        self.output.data.clear()
        answer = scrambled(password, salt_of(hello))
        words = FLAGS.to_bytes(4, "little") + bytes(28) + user.encode() + b"\0" + bytes([len(answer)]) + answer
        words += server.name.encode() + b"\0mysql_native_password\0"
        session.receive(len(words).to_bytes(3, "little") + b"\x01" + words)
        self.codec = mysql_codec.Codec("ns", "host", 1, quick=False)
        self.locks = SessionCodec("ns", "host", 1, quick=False)

    def replies(self) -> list[QueryReply]:
        assert isinstance(self.host, VirtualTime)
        self.host.advance()
        data = bytes(self.output.data)
        self.output.data.clear()
        return RowsReader().feed(data)

    def say(self, text: bytes) -> QueryReply:
        self.session.receive(query(text))
        [reply] = self.replies()
        return reply

    def ask(self, order: mysql_codec.Order) -> Any:
        reply = self.say(order.text)
        if reply.error is not None:
            return reply.error.code
        value = order.read(reply)
        return self.ask(value) if isinstance(value, mysql_codec.Order) else value

    def table(self, request: QueueRequest) -> Any:
        return self.ask(self.codec.write(request, 0))


@pytest.fixture
def host() -> VirtualTime:
    return VirtualTime(1_000_000.0, Random(1))


@pytest.fixture
def server(host: VirtualTime) -> MariaDBServer:
    return new_server(host)


def new_server(host: VirtualTime) -> MariaDBServer:
    server = MariaDBServer(host, "one", {"root": "", "bob": "secret"})
    client = opened(server)
    for text in statements(schema()):
        client.say(text)
    client.session.closed()
    return server


def opened(server: MariaDBServer) -> Client:
    client = Client(server)
    client.output.data.clear()
    client.say(SHOW_LIFE)
    return client


@pytest.mark.parametrize(
    ("memory", "remembers"), [(Memory.ALL, ["o1"]), (Memory.NOTHING, None), (Memory.BACKUP, ["o2"])]
)
def test_a_restart_remembers_what_it_is_told_to(
    server: MariaDBServer, host: VirtualTime, memory: Memory, remembers: list[str] | None
) -> None:
    client = opened(server)
    client.table(Take([OTHER], True))
    server.back_up()
    client.table(Release(OTHER, 0.0))
    [granted] = client.table(Take([CLAIM], True))
    server.stop()
    assert not server.sessions
    assert not client.output.ended, "a machine that failed says nothing"
    server.start(memory)
    client = opened(server)
    assert (client.say(META).error is None) == (remembers is not None)
    if remembers is not None:
        [view] = client.table(Survey(""))
        assert [one.owner for one in view.holders] == remembers
        assert (view.holders[0].token == granted.token) == (memory is Memory.ALL)


def test_session_locks_end_with_a_restart_and_tokens_do_not_go_back(server: MariaDBServer, host: VirtualTime) -> None:
    token = (client := opened(server)).ask(client.locks.take(CLAIM, False, False))
    host.set_calendar(host.calendar() - 3600)
    server.stop()
    server.start(Memory.ALL)
    assert not server.database.sessions.holders, "its rows are in memory"
    again = (client := opened(server)).ask(client.locks.take(OTHER, False, False))
    assert again > token


def test_a_replica_lacks_what_it_has_not_followed(server: MariaDBServer, host: VirtualTime) -> None:
    replica = new_server(host)
    client = opened(server)
    client.table(Take([CLAIM], True))
    replica.follow(server)
    [waiting] = client.table(Take([OTHER], True))
    assert not waiting.token
    there = opened(replica)
    assert there.table(Take([OTHER], True)) == 1290
    replica.promote()
    [view] = there.table(Survey(""))
    assert [one.owner for one in (*view.holders, *view.waiters)] == ["o1"]


def test_a_full_disk_and_a_read_only_server_refuse_what_writes(server: MariaDBServer) -> None:
    client = opened(server)
    server.disk_full = True
    assert client.table(Take([CLAIM], True)) == 1114
    server.disk_full, server.read_only = False, True
    assert client.table(Take([CLAIM], True)) == 1290
    assert client.table(Survey("")) == []


def test_a_waiter_gets_the_lock_in_the_moment_in_which_its_holder_ends(server: MariaDBServer) -> None:
    holder, waiter, late = opened(server), opened(server), opened(server)
    assert holder.ask(holder.locks.take(CLAIM, False, False))
    waiter.session.receive(query(waiter.locks.wait(OTHER).text))
    assert not waiter.replies()
    holder.session.closed()
    assert late.ask(late.locks.take(CLAIM, False, False)) == 0, "nobody comes in between"
    [reply] = waiter.replies()
    assert int(reply.rows[0][0] or 0)


@pytest.mark.parametrize("goodbye", [b"", b"\x01\0\0\0\x01"], ids=["silent", "with a goodbye"])
def test_who_leaves_while_it_waits_is_noticed_unless_it_said_so(
    server: MariaDBServer, host: VirtualTime, goodbye: bytes
) -> None:
    holder, waiter = opened(server), opened(server)
    holder.ask(holder.locks.take(CLAIM, False, False))
    waiter.session.receive(query(waiter.locks.wait(OTHER).text) + goodbye)
    waiter.session.closed()
    host.advance(5.0)
    assert (waiter.session.number in server.sessions) == bool(goodbye)


def test_a_listener_is_roused_by_whoever_lets_go(server: MariaDBServer, host: VirtualTime) -> None:
    holder, ears = opened(server), opened(server)
    wake = 77
    assert ears.ask(mysql_codec.listener_open(wake))
    ears.session.receive(query(mysql_codec.listener_hear(wake, holder.session.number).text))
    holder.table(Take([CLAIM], True))
    holder.ask(holder.codec.write(Take([OTHER], True), wake))
    assert not ears.replies()
    holder.table(Release(CLAIM, 0.0))
    [reply] = ears.replies()
    assert reply.error is not None
    assert reply.error.code == 1317
    [(owner, _)] = ears.ask(mysql_codec.listener_hear(wake, holder.session.number))
    assert owner == "o2"


def test_a_listener_that_is_alone_is_told_so(server: MariaDBServer, host: VirtualTime) -> None:
    ears = opened(server)
    assert ears.ask(mysql_codec.listener_hear(77, 999)) == mysql_codec.ALONE_CODE
    beside = opened(server)
    ears.session.receive(query(mysql_codec.listener_hear(77, beside.session.number).text))
    host.advance(1.0)
    assert not ears.replies()
    beside.session.closed()
    [reply] = ears.replies()
    assert reply.error is not None
    assert reply.error.code == mysql_codec.ALONE_CODE


def test_a_fault_strikes_once(server: MariaDBServer) -> None:
    client = opened(server)
    server.refuse_next(b"holdfast_take", ServerError(1213, "40001", "Deadlock found"))
    assert client.table(Take([CLAIM], True)) == 1213
    [taken] = client.table(Take([CLAIM], True))
    assert taken.token
