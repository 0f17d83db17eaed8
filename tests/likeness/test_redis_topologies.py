"""Users, replicas, sentinels and clusters: the model says what real ones say, word for word."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from contextlib import closing
from random import Random

from holdfast.backends.redis.codec import NOWHERE, Codec, Order
from holdfast.backends.redis.resp import command
from holdfast.backends.redis.slots import slot_of
from holdfast.model import Claim, LockSpec
from holdfast_sim.servers.redis.acl import User
from holdfast_sim.servers.redis.cluster import Cluster
from holdfast_sim.servers.redis.replication import follow
from holdfast_sim.servers.redis.sentinel import Sentinel
from holdfast_sim.servers.redis.server import RedisServer as Model
from tests.likeness.play import RealTime
from tests.likeness.redis_sides import ModelSide, RealSide, first_difference
from tests.likeness.redis_steps import plain
from tests.support.redis_server import RedisServer, running
from tests.support.redis_topologies import with_cluster, with_replicas, with_sentinel

CODEC = Codec("hf", "host", 7)
CLAIM = Claim(LockSpec("a", 1000.0), "owner", "actor", token=5)


def whole(order: Order) -> bytes:
    return order.program.call_with_source(order.size) + order.words


PROGRAMS = [
    whole(order)
    for order in (
        CODEC.take(CLAIM, True, NOWHERE),
        CODEC.renew([CLAIM]),
        CODEC.release(CLAIM, 0.0),
        CODEC.survey([CODEC.line("a")]),
    )
]


def same(
    host: RealTime, models: Sequence[Model], reals: Sequence[RedisServer], said: Iterable[tuple[int, bytes]]
) -> None:
    """Each request goes to the server of its client's number."""
    with closing(RealSide(reals)) as real:
        steps = [plain(client, data) for client, data in said]
        found = first_difference(ModelSide(host, models), real, steps, Random(1))
    assert found is None, found


def test_users_and_passwords() -> None:
    host = RealTime(Random(1))
    with running(requirepass="secret") as real:
        client = real.client(password="secret")
        client.execute_command(
            "ACL SETUSER ann on >pass ~hf/* &hf/* "
            "+eval +evalsha +get +mget +set +hget +hset +time +hello +subscribe +ping"
        )
        client.execute_command("ACL SETUSER bob on >pass ~hf/* +eval +get +mget +time")
        client.execute_command("ACL SETUSER off off >pass ~* +@all")
        client.close()
        model = Model(host, settings={"requirepass": "secret"})
        some = frozenset(
            {"eval", "evalsha", "get", "mget", "set", "hget", "hset", "time", "hello", "subscribe", "ping"}
        )
        model.users.by_name["ann"] = User("ann", {b"pass"}, commands=some, keys=(b"hf/*",), channels=(b"hf/*",))
        few = frozenset({"eval", "get", "mget", "time"})
        model.users.by_name["bob"] = User("bob", {b"pass"}, commands=few, keys=(b"hf/*",), channels=())
        model.users.by_name["off"] = User("off", {b"pass"}, on=False)
        first = [
            command("PING"), command("GET", "k"), command("HELLO", 3), command("AUTH", "wrong"), command("NONSENSE"),
            command("AUTH", "off", "pass"), command("AUTH", "nobody", "pass"),
            command("HELLO", 3, "AUTH", "ann", "wrong"), command("HELLO", 3, "SETNAME"), command("GET"),
            command("AUTH", "a", "b", "c"),
        ]  # fmt: skip
        second = [
            command("AUTH", "ann", "pass"), command("GET", "hf/x"), command("GET", "k"), command("DEL", "hf/x"),
            command("CONFIG", "GET", "append*"), command("SUBSCRIBE", "other"), *PROGRAMS,
            command("HELLO", 3, "AUTH", "ann", "pass", "SETNAME", "n"), command("SUBSCRIBE", "hf/wake/1"),
            command("SCRIPT", "LOAD", "return 1"), command("RESET"), command("GET", "hf/x"),
        ]  # fmt: skip
        third = [
            command("AUTH", "secret"), command("CONFIG", "SET", "requirepass", "new"), command("GET", "k"),
            command("AUTH", "secret"), command("GET", "k"),
        ]  # fmt: skip
        said = [(0, data) for data in first] + [(1, data) for data in second] + [(2, data) for data in third]
        said += [(3, data) for data in (command("AUTH", "secret"), command("AUTH", "new"), command("FLUSHALL"))]
        said += [(3, data) for data in (command("AUTH", "bob", "pass"), *PROGRAMS, command("SUBSCRIBE", "hf/wake/1"))]
        same(host, [model] * 4, [real] * 4, said)


def test_a_replica_and_one_without_its_primary() -> None:
    host = RealTime(Random(1))
    with with_replicas(1) as (primary, [replica]):
        model, follower = Model(host, address=("127.0.0.1", primary.port)), Model(host)
        follow(follower, model, 0.001)
        in_step = command("WAIT", 1, 5000)  # to a replica an error, which is compared, too
        requests = [command("SET", "k", "v"), in_step, command("GET", "k"), *PROGRAMS[:-1], in_step, PROGRAMS[-1]]
        same(host, [model, follower], [primary, replica], [(client, data) for data in requests for client in (0, 1)])
        primary.stop()
        model.stop()
        follower.replication.restarted()
        while b"master_link_status:down" not in replica.raw("INFO", "replication"):
            pass
        said = [command("CONFIG", "SET", "replica-serve-stale-data", "no"), command("GET", "k"), command("PING")]
        same(host, [follower], [replica], [(0, data) for data in said])


def test_a_sentinel() -> None:
    host = RealTime(Random(1))
    with with_sentinel() as (url, primary, _):
        port = int(url.split(":")[2].partition("/")[0])
        service = url.rpartition("/")[2] if url.count("/") == 3 else url.split("/")[3]
        sentinel = Sentinel()
        sentinel.watch(service, Model(host, address=("127.0.0.1", primary.port)))
        model = Model(host, sentinel=sentinel)
        real = RedisServer(primary.folder, port, [], {})
        requests = [
            command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", service),
            command("SENTINEL", "get-master-addr-by-name", "other"),
            command("PING"), command("GET", "k"), command("SENTINEL"),
        ]  # fmt: skip
        same(host, [model], [real], [(0, data) for data in requests])


def test_a_cluster_whose_slots_move() -> None:
    host = RealTime(Random(1))
    with with_cluster() as reals:
        cluster = Cluster()
        models = [Model(host, address=("127.0.0.1", real.port)) for real in reals]
        names = [real.raw("CLUSTER", "MYID").split(b"\r\n")[1].decode() for real in reals]
        nodes = [cluster.add(model) for model in models]
        cluster.share_out()
        for node, name in zip(nodes, names, strict=True):
            node.name = name
        key, other = b"{a}1", b"{a}2"
        slot = slot_of(key)
        holder = next(at for at, node in enumerate(nodes) if node.view[slot] is node)
        target = (holder + 1) % 3
        asked = [command("GET", key), command("EXISTS", key, other), command("EXISTS", key, "{b}1"), *PROGRAMS]
        asked += [command("ASKING") + data for data in asked] + [command("CLUSTER", "MYID"), command("SELECT", 1)]
        everywhere = [(client, data) for data in asked for client in range(3)]
        same(host, models, reals, everywhere)
        reals[target].raw("CLUSTER", "SETSLOT", str(slot), "IMPORTING", names[holder])
        reals[holder].raw("CLUSTER", "SETSLOT", str(slot), "MIGRATING", names[target])
        cluster.begin_move(slot, nodes[target])
        same(host, models, reals, everywhere)
        half = [(target, command("ASKING") + command("SET", other, "v"))]
        same(host, models, reals, [*half, *everywhere])
        for real in reals:
            real.raw("CLUSTER", "SETSLOT", str(slot), "NODE", names[target])
        cluster.finish_move(slot)
        for one in nodes:
            one.view = nodes[target].view
        same(host, models, reals, everywhere)


def test_a_server_that_is_full_or_has_too_few_replicas() -> None:
    host = RealTime(Random(1))
    old = Codec("hf", "host", 7, flags=False)
    plain_programs = [whole(old.renew([CLAIM])), whole(old.release(CLAIM, 0.0))]
    requests = [command("SET", "k", "v"), command("DEL", "k"), *PROGRAMS[:2], *plain_programs, *PROGRAMS]
    with running() as real:
        said = [PROGRAMS[0]]
        for setting in ("maxmemory", "min-replicas-to-write"):
            said += [command("CONFIG", "SET", setting, 1), *requests, command("CONFIG", "SET", setting, 0), *requests]
        same(host, [Model(host)], [real], [(0, data) for data in said])


def test_a_server_that_runs_a_script_for_too_long() -> None:
    host = RealTime(Random(1))
    with running(busy_reply_threshold="1") as real, socket.create_connection(("127.0.0.1", real.port)) as looping:
        looping.sendall(command("EVAL", "while true do end", 0))
        while not real.raw("PING").startswith(b"-BUSY"):
            pass
        model = Model(host)
        model.busy = True
        requests = [command("GET", "k"), command("HELLO", 3), command("EVALSHA", "0" * 40, 0), command("PING")]
        requests += [command("SUBSCRIBE", "c"), command("INFO"), *PROGRAMS, command("CLIENT", "SETNAME", "n")]
        same(host, [model], [real], [(0, data) for data in requests])
        real.raw("SCRIPT", "KILL")
