"""The simulated Redis server in virtual time: what it forgets, what reaches its replicas, who takes over."""

from __future__ import annotations

import pytest

from holdfast.backends.redis.codec import NOWHERE, Codec
from holdfast.backends.redis.resp import NOT_YET, Error, RespReader, command
from holdfast.backends.redis.slots import slot_of
from holdfast.model import Claim, LockSpec
from holdfast_sim.servers.model import Memory
from holdfast_sim.servers.redis.acl import User
from holdfast_sim.servers.redis.cluster import Cluster
from holdfast_sim.servers.redis.replication import fail_over, follow
from holdfast_sim.servers.redis.server import RedisServer
from tests.likeness.play import Recorder
from tests.likeness.virtual import VirtualTime

TODAY_S = 1_750_000_000.0
LAG_S = 0.5
CODEC = Codec("hf", "host", 7)
CLAIM = Claim(LockSpec("a", 30.0), "owner", "actor")


class Client:
    """One session, and what it was told."""

    def __init__(self, server: RedisServer) -> None:
        self.recorder = Recorder()
        self._session = server.accept(self.recorder)
        self._reader = RespReader()

    def say(self, data: bytes) -> object:
        self._session.receive(data)
        return self.heard()

    def heard(self) -> object:
        self._reader.feed(bytes(self.recorder.data))
        self.recorder.data.clear()
        said = self._reader.gets()
        return str(said) if isinstance(said, Error) else said

    def do(self, *words: bytes | str | int) -> object:
        return self.say(command(*words))


@pytest.fixture
def host() -> VirtualTime:
    return VirtualTime(TODAY_S)


@pytest.fixture
def primary(host: VirtualTime) -> RedisServer:
    return RedisServer(host)


@pytest.fixture
def replica(host: VirtualTime, primary: RedisServer) -> RedisServer:
    server = RedisServer(host, address=("127.0.0.2", 6379))
    follow(server, primary, LAG_S)
    return server


def test_a_restart_forgets_programs_and_sessions_and_what_it_is_told_to(primary: RedisServer) -> None:
    client, order = Client(primary), CODEC.take(CLAIM, True, NOWHERE)
    primary.back_up()
    assert isinstance(client.say(order.program.call_with_source(order.size) + order.words), bytes)
    run_id = primary.run_id
    primary.stop()
    assert client.do("PING") is NOT_YET
    primary.start(Memory.ALL)
    again = Client(primary)
    assert str(again.say(order.program.call(order.size) + order.words)).startswith("NOSCRIPT")
    assert again.do("EXISTS", "hf/line/a") == 1
    assert primary.run_id != run_id
    for memory in (Memory.BACKUP, Memory.NOTHING):
        primary.stop()
        primary.start(memory)
        assert Client(primary).do("EXISTS", "hf/line/a") == 0


def test_a_key_that_was_gone_stays_gone_when_the_calendar_goes_back(host: VirtualTime, primary: RedisServer) -> None:
    client = Client(primary)
    client.do("SET", "k", "v", "PX", 1000)
    host.set_calendar(TODAY_S + 2)
    assert client.do("GET", "k") is None
    host.set_calendar(TODAY_S)
    assert client.do("GET", "k") is None


def test_the_last_writes_are_missing_after_a_fail_over(
    host: VirtualTime, primary: RedisServer, replica: RedisServer
) -> None:
    client, other = Client(primary), Client(replica)
    client.do("SET", "k", "old")
    host.advance(LAG_S)
    client.do("SET", "k", "new")
    assert other.do("GET", "k") == b"old"
    fail_over(primary, replica)
    host.advance(10.0)
    assert client.recorder.ended
    assert other.do("GET", "k") == b"old"
    assert other.do("SET", "k", "newest") == b"OK"
    before = Client(primary)
    assert str(before.do("SET", "k", "v")).startswith("READONLY")
    host.advance(LAG_S)
    assert before.do("GET", "k") == b"newest"


def test_wait_counts_who_has_it(host: VirtualTime, primary: RedisServer, replica: RedisServer) -> None:
    client = Client(primary)
    client.do("SET", "k", "v")
    assert client.say(command("WAIT", 1, 100) + command("PING")) is NOT_YET
    host.advance(0.1)
    assert client.heard() == 0
    assert client.heard() == b"PONG"
    assert client.do("WAIT", 1, 0) is NOT_YET
    host.advance(2 * LAG_S)
    assert client.heard() == 1
    primary.replication.links[0].cut()
    client.do("SET", "k", "v")
    assert client.do("WAIT", 1, 10_000) is NOT_YET
    primary.replication.links[0].mend()
    assert client.heard() == 1


def test_a_restart_from_nothing_empties_the_replica(
    host: VirtualTime, primary: RedisServer, replica: RedisServer
) -> None:
    Client(primary).do("SET", "k", "v")
    host.advance(LAG_S)
    primary.stop()
    primary.start(Memory.NOTHING)
    host.advance(LAG_S)
    assert Client(replica).do("EXISTS", "k") == 0


def test_a_server_that_loads_or_is_busy_refuses(primary: RedisServer) -> None:
    client = Client(primary)
    primary.loading = True
    assert str(client.do("GET", "k")).startswith("LOADING")
    primary.loading, primary.busy = False, True
    assert str(client.do("GET", "k")).startswith("BUSY")
    primary.busy = False
    assert client.do("GET", "k") is None


def test_a_changed_password_keeps_sessions_and_a_deleted_user_does_not(primary: RedisServer) -> None:
    primary.users.by_name["ann"] = User("ann", {b"old"})
    client = Client(primary)
    client.do("AUTH", "ann", "old")
    primary.users.by_name["ann"].passwords = {b"new"}
    assert client.do("PING") == b"PONG"
    assert str(Client(primary).do("AUTH", "ann", "old")).startswith("WRONGPASS")
    primary.delete_user("ann")
    assert client.recorder.ended


def test_a_cluster_is_behind_for_a_while_and_down_until_somebody_takes_over(host: VirtualTime) -> None:
    cluster = Cluster(gossip_s=1.0)
    nodes = [cluster.add(RedisServer(host, address=("127.0.0.1", 7000 + number))) for number in range(3)]
    spare = cluster.add(RedisServer(host, address=("127.0.0.1", 7009)), replica_of=nodes[0], lag_s=LAG_S)
    cluster.share_out()
    key = next(f"k{number}" for number in range(100) if nodes[0].view[slot_of(b"k%d" % number)] is nodes[0])
    slot = slot_of(key.encode())
    other = Client(nodes[1].server)
    assert other.do("GET", key) == f"MOVED {slot} 127.0.0.1:7000"
    nodes[0].server.stop()
    cluster.mark_failed(nodes[0])
    assert other.do("GET", key) == "CLUSTERDOWN The cluster is down"
    cluster.fail_over(nodes[0], spare)
    assert Client(spare.server).do("SET", key, "v") == b"OK"
    assert other.do("GET", key) == f"MOVED {slot} 127.0.0.1:7000"
    host.advance(1.0)
    assert other.do("GET", key) == f"MOVED {slot} 127.0.0.1:7009"
    listener = Client(nodes[2].server)
    listener.do("SUBSCRIBE", "c")
    assert other.do("PUBLISH", "c", "m") == 0
    host.advance(0.1)
    assert listener.heard() == [b"message", b"c", b"m"]
