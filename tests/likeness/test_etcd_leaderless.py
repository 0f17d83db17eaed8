"""A simulated member without a leader answers as a real one does, to the byte."""

from __future__ import annotations

import re
import time
from random import Random

from holdfast_sim.servers.etcd import EtcdCluster
from tests.etcd.cluster import running
from tests.likeness.etcd_requests import framed
from tests.likeness.etcd_sides import QUICK, TIMEOUT_S, Real, levelled, replies_in
from tests.likeness.play import Recorder
from tests.likeness.virtual import VirtualTime

REQUIRE_LEADER = "Grpc-Metadata-hasleader: true\r\n"
WATCH = framed("/v3/watch", '{"create_request":{"key":"YQ=="}}', REQUIRE_LEADER)
ASKED = [
    framed("/v3/kv/range", '{"key":"YQ=="}', REQUIRE_LEADER),
    framed("/v3/kv/put", '{"key":"YQ=="}', REQUIRE_LEADER),
    framed("/v3/kv/range", '{"key":"YQ==","serializable":true}'),
    framed("/v3/kv/txn", '{"success":[{"request_range":{"key":"YQ==","serializable":true}}]}'),
    framed("/v3/lease/keepalive", '{"ID":5}', REQUIRE_LEADER),
    framed("/v3/maintenance/status", "{}"),
    WATCH,
]


def without_sizes(reply: bytes) -> bytes:
    """A member that stands for election writes to its log; its file has a size, and the reply a length."""
    reply = re.sub(rb'"(raftIndex|raftAppliedIndex|dbSize|dbSizeInUse|raftTerm)":"\d+",?', b"", reply)
    return levelled(re.sub(rb"\r\nContent-Length: \d+", b"", reply))


def test_a_member_that_has_lost_its_leader_says_so_alike() -> None:
    with running() as real:
        leader = real.leader()
        left = next(member for member in real.members if member is not leader)
        headers = [member.rpc("/v3/kv/range", key="AA==")["header"] for member in real.members]
        clock = VirtualTime(0.0, Random(0))
        ids = [int(header["member_id"]) for header in headers]
        model = EtcdCluster([clock] * 3, QUICK, int(headers[0]["cluster_id"]), ids)
        if leader.number != 0:
            model.move_leader(leader.number)
        for twin in model.members:
            twin.term = int(headers[0]["raft_term"])
        watching, heard = Real(left), Recorder()
        model.members[left.number].accept(heard).receive(WATCH)
        watching.ask([WATCH], 0)
        while b"created" not in watching.heard(0.01):
            pass
        for member in real.members:
            if member is not left:
                member.stop()
                model.members[member.number].stop()
        clock.advance(10 * QUICK.election_s)
        end = time.monotonic() + TIMEOUT_S
        while b"no leader" not in watching.heard(0.05):
            assert time.monotonic() < end
        assert levelled(bytes(heard.data)) == levelled(watching.heard(0.05))
        link, output = Real(left), Recorder()
        session = model.members[left.number].accept(output)
        for asked in ASKED:
            session.receive(asked)
        expected = link.ask(ASKED, len(ASKED))
        answered, _ = replies_in(bytes(output.data))
        assert [without_sizes(each) for each in answered] == [without_sizes(each) for each in expected]
        watching.close()
        link.close()
