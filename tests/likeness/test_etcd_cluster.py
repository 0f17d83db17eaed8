"""What a simulated cluster of three does when parts of it fail. Texts and times are those seen at a real one."""

from __future__ import annotations

import json
from random import Random

import pytest

from holdfast_sim.servers.etcd import ClusterSettings, EtcdCluster, EtcdMember
from holdfast_sim.servers.etcd.requests import RangeRequest, Span
from holdfast_sim.servers.model import Memory
from tests.likeness.etcd_requests import Asker, b64, framed
from tests.likeness.etcd_sides import replies_in
from tests.likeness.play import Recorder, in_pieces, rounds
from tests.likeness.virtual import VirtualTime

SETTINGS = ClusterSettings()
READ = ("/v3/kv/range", '{"key":"YQ=="}')
PUT = ("/v3/kv/put", '{"key":"YQ==","value":"Yg=="}')
GRANT = ("/v3/lease/grant", '{"ID":5,"TTL":10}')
KEEP = ("/v3/lease/keepalive", '{"ID":5}')
REQUIRE_LEADER = "Grpc-Metadata-hasleader: true\r\n"
AN_ELECTION_S = 2 * SETTINGS.election_s


class Client:
    """One connection."""

    def __init__(self, member: EtcdMember) -> None:
        self.output = Recorder()
        self.session = member.accept(self.output)

    def ask(self, path: str, body: str, more: str = "") -> dict[str, object] | None:
        """The answer, if there is one by now."""
        self.session.receive(framed(path, body, more))
        return self.answer()

    def answer(self) -> dict[str, object] | None:
        found, rest = replies_in(bytes(self.output.data))
        if not found:
            return None
        self.output.data[:] = rest
        body = found[0].partition(b"\r\n\r\n")[2]
        if b"chunked" in found[0]:
            body = body.partition(b"\r\n")[2].partition(b"\r\n")[0]
        answer: dict[str, object] = json.loads(body)
        result = answer.get("result", answer)
        assert isinstance(result, dict)
        return result


@pytest.fixture
def time() -> VirtualTime:
    return VirtualTime(1_700_000_000.0, Random(7))


@pytest.fixture
def cluster(time: VirtualTime) -> EtcdCluster:
    return EtcdCluster([time] * 3, SETTINGS)


def header(answer: dict[str, object] | None) -> dict[str, str]:
    assert answer is not None
    found = answer["header"]
    assert isinstance(found, dict)
    return found


def said(answer: dict[str, object] | None) -> object:
    assert answer is not None
    error = answer.get("error")
    return error["message"] if isinstance(error, dict) else error


def test_a_deposed_leader_goes_on_answering_keep_alives_and_nothing_else(
    cluster: EtcdCluster, time: VirtualTime
) -> None:
    asker, kept = Client(cluster.members[0]), Client(cluster.members[0])
    assert asker.ask(*GRANT)
    put = Client(cluster.members[1]).ask("/v3/kv/put", '{"key":"YQ==","lease":5}')
    old = cluster.depose()
    time.advance(AN_ELECTION_S)
    assert cluster.leader is not None
    assert cluster.leader is not old
    other = Client(cluster.leader)
    assert int(header(other.ask(*READ))["raft_term"]) > int(header(put)["raft_term"])
    assert asker.ask(*READ) is None
    for _ in range(12):  # longer than the lease lasts at the new leader
        time.advance(1.0)
        answer = kept.ask(*KEEP)
        assert answer is not None
        assert answer["TTL"] == "10"
        assert header(answer)["raft_term"] == header(put)["raft_term"]
    assert said(asker.answer()) == "etcdserver: request timed out"
    assert header(other.ask(*READ))["revision"] == "3"  # the lease has ended, and its key with it
    old.disk_hangs = False
    answer = kept.ask(*KEEP)
    assert answer is not None
    assert "TTL" not in answer


def test_a_new_leader_gives_a_lease_its_whole_time_and_an_election_timeout(
    cluster: EtcdCluster, time: VirtualTime
) -> None:
    client = Client(cluster.members[2])
    assert client.ask(*GRANT)
    time.advance(9.0)
    cluster.move_leader(1)
    answer = client.ask("/v3/lease/timetolive", '{"ID":5}')
    assert answer is not None
    assert answer["TTL"] == "11"
    time.advance(10.9)
    assert client.ask("/v3/lease/timetolive", '{"ID":5}') != answer
    time.advance(0.7)
    gone = client.ask("/v3/lease/timetolive", '{"ID":5}')
    assert gone is not None
    assert gone["TTL"] == "-1"


def test_without_a_majority_nothing_is_done_and_everybody_is_told_late(cluster: EtcdCluster, time: VirtualTime) -> None:
    last = cluster.members[2]
    watching = Client(last)
    watching.ask("/v3/watch", '{"create_request":{"key":"YQ=="}}', REQUIRE_LEADER)
    silent = Client(last)
    silent.ask("/v3/watch", '{"create_request":{"key":"YQ=="}}')
    cluster.members[0].stop()
    cluster.members[1].stop()
    at_once = [Client(last) for _ in range(3)]
    assert [client.ask(*asked) for client, asked in zip(at_once, (READ, PUT, KEEP), strict=True)] == [None] * 3
    time.advance(AN_ELECTION_S)
    assert said(Client(last).ask(*READ, REQUIRE_LEADER)) == "etcdserver: no leader"
    assert Client(last).ask("/v3/kv/range", '{"key":"YQ==","serializable":true}')
    late = Client(last)
    assert late.ask(*PUT) is None
    time.advance(SETTINGS.request_timeout_s)
    answers = [said(client.answer()) for client in (*at_once, late)]
    assert answers[:2] == ["etcdserver: request timed out"] * 2
    assert answers[2:] == ["etcdserver: no leader", "context deadline exceeded"]
    assert b"etcdserver: no leader" in watching.output.data
    assert b"no leader" not in silent.output.data


def test_what_waits_for_a_leader_is_carried_out_when_there_is_one(cluster: EtcdCluster, time: VirtualTime) -> None:
    last = cluster.members[2]
    cluster.members[0].stop()
    cluster.members[1].stop()
    time.advance(AN_ELECTION_S)
    put, read = Client(last), Client(last)
    assert put.ask(*PUT) is None
    assert read.ask(*READ) is None
    cluster.members[1].start(Memory.ALL)
    time.advance(AN_ELECTION_S)
    assert header(put.answer())["revision"] == "2"
    assert said(read.answer()) == "etcdserver: leader changed"
    assert header(read.ask(*READ))["revision"] == "2"


def test_a_follower_that_lags_shows_the_past_to_who_does_not_mind(cluster: EtcdCluster, time: VirtualTime) -> None:
    cluster.members[2].lag_s = 0.3
    assert Client(cluster.members[0]).ask(*PUT)
    reader, patient = Client(cluster.members[2]), Client(cluster.members[2])
    assert header(reader.ask("/v3/kv/range", '{"key":"YQ==","serializable":true}'))["revision"] == "1"
    assert patient.ask(*READ) is None
    time.advance(0.3)
    assert header(patient.answer())["revision"] == "2"


def test_a_member_that_hangs_answers_when_it_goes_on(cluster: EtcdCluster, time: VirtualTime) -> None:
    client = Client(cluster.members[2])
    cluster.members[2].pause()
    assert client.ask("/v3/maintenance/status", "{}") is None
    time.advance(1.0)
    cluster.members[2].resume()
    assert header(client.answer())["revision"] == "1"


@pytest.mark.parametrize("seed", range(6))
def test_a_member_that_hung_beyond_a_time_out_answers_once(seed: int) -> None:
    time = VirtualTime(0.0, Random(seed))
    cluster = EtcdCluster([time] * 3, SETTINGS)
    member = cluster.members[2]
    cluster.isolate(2)
    time.advance(AN_ELECTION_S)
    client = Client(member)
    assert client.ask(*KEEP) is None
    member.pause()
    time.advance(2 * SETTINGS.request_timeout_s)
    cluster.heal()
    member.resume()
    time.advance(3 * AN_ELECTION_S)
    answer = client.answer()
    assert answer is not None
    assert "ID" in answer or said(answer) == "etcdserver: no leader"
    assert client.answer() is None


def test_a_member_that_was_cut_off_deposes_the_leader_when_it_comes_back(
    cluster: EtcdCluster, time: VirtualTime
) -> None:
    before = header(Client(cluster.members[0]).ask(*PUT))["raft_term"]
    cluster.isolate(2)
    time.advance(5.0)
    assert header(Client(cluster.members[0]).ask(*PUT))["raft_term"] == before
    cluster.heal()
    time.advance(2 * AN_ELECTION_S)
    assert int(header(Client(cluster.members[2]).ask(*PUT))["raft_term"]) > int(before)


@pytest.mark.parametrize("new_identity", [False, True])
def test_a_restored_cluster_goes_back_in_revisions(cluster: EtcdCluster, time: VirtualTime, new_identity: bool) -> None:
    assert Client(cluster.members[0]).ask(*PUT)
    cluster.members[0].back_up()
    before = header(Client(cluster.members[0]).ask(*PUT))
    cluster.stop()
    cluster.start(Memory.BACKUP, new_identity)
    time.advance(2 * AN_ELECTION_S)
    after = header(Client(cluster.members[0]).ask(*READ))
    assert (before["revision"], after["revision"]) == ("3", "2")
    assert (before["cluster_id"] != after["cluster_id"]) == new_identity


def test_a_member_that_starts_again_knows_its_keys_and_no_tokens(cluster: EtcdCluster, time: VirtualTime) -> None:
    cluster.require_login({"keeper": "secret"}, b"mine/")
    member = cluster.members[2]
    answer = Client(member).ask("/v3/auth/authenticate", '{"name":"keeper","password":"secret"}')
    assert answer is not None
    token = f"Authorization: {answer['token']}\r\n"
    put = ("/v3/kv/put", f'{{"key":"{b64("mine/a")}"}}')
    assert header(Client(member).ask(*put, token))["revision"] == "2"
    member.stop()
    member.start(Memory.ALL)
    assert said(Client(member).ask(*put, token)) == "etcdserver: invalid auth token"
    assert header(Client(cluster.members[1]).ask(*put, token))["revision"] == "3"
    time.advance(SETTINGS.token_ttl_s)
    assert said(Client(cluster.members[1]).ask(*put, token)) == "etcdserver: invalid auth token"


@pytest.mark.parametrize(("election_s", "heartbeat_s", "least_s"), [(1.0, 0.1, 2), (0.2, 0.02, 1), (5.0, 0.5, 8)])
def test_the_shortest_lease_lasts_one_and_a_half_election_timeouts(
    time: VirtualTime, election_s: float, heartbeat_s: float, least_s: int
) -> None:
    cluster = EtcdCluster([time], ClusterSettings(election_s=election_s, heartbeat_s=heartbeat_s))
    answer = Client(cluster.members[0]).ask("/v3/lease/grant", '{"ID":5,"TTL":1}')
    assert answer is not None
    assert answer["TTL"] == str(least_s)


def test_what_a_stream_asks_beyond_its_first_512_bytes_may_be_lost(time: VirtualTime) -> None:
    cluster = EtcdCluster([time], ClusterSettings(lost_body_chance=0.5))
    asked = f'{{"create_request":{{"key":"{b64("k" * 90)}"}}}}' * 6
    assert begun_watches(cluster, framed("/v3/watch", asked)) == {3, 6}
    assert begun_watches(cluster, framed("/v3/watch", asked, "Connection: close\r\n")) == {6}


def begun_watches(cluster: EtcdCluster, request: bytes) -> set[int]:
    """How many watches began on twenty streams."""
    counts = set()
    for _ in range(20):
        client = Client(cluster.members[0])
        client.session.receive(request)
        counts.add(client.output.data.count(b'"created":true'))
    return counts


def disturb(cluster: EtcdCluster, chance: Random) -> None:
    member = chance.choice(cluster.members)
    match chance.choice(("stop", "start", "pause", "resume", "disk", "cut", "heal", "lag", "move")):
        case "stop" if member.up:
            member.stop()
        case "start" if not member.up:
            member.start(chance.choice((Memory.ALL, Memory.NOTHING)))
        case "pause" if member.up and not member.paused:
            member.pause()
        case "resume" if member.up and member.paused:
            member.resume()
        case "disk" if member.up:
            member.disk_hangs = not member.disk_hangs
        case "cut":
            cluster.isolate(member.number)
        case "heal":
            cluster.heal()
        case "lag":
            member.lag_s = chance.choice((0.0, 0.05, 0.5))
        case "move" if member.takes_part and cluster.commits_for(member) is not None:
            cluster.move_leader(member.number)


def calm(cluster: EtcdCluster) -> None:
    cluster.heal()
    for member in cluster.members:
        member.lag_s = 0.0
        if not member.up:
            member.start(Memory.ALL)
        if member.paused:
            member.resume()
        member.disk_hangs = False


@pytest.mark.parametrize("seed", range(rounds(20)))
def test_after_any_faults_everybody_answers_and_all_members_agree(seed: int) -> None:
    chance = Random(seed)
    time = VirtualTime(0.0, chance)
    cluster = EtcdCluster([time] * 3, SETTINGS)
    asker = Asker(chance, "fuzz/", 1, compacts=chance.random() < 0.5)
    clients: list[Client] = []
    newest = 0
    for _ in range(80):
        if chance.random() < 0.3:
            disturb(cluster, chance)
        up = [member for member in cluster.members if member.up]
        if up and chance.random() < 0.5:
            clients.append(Client(chance.choice(up)))
        if clients:
            client = chance.choice(clients)
            for piece in in_pieces(chance.choice((asker.watch(), b"".join(asker.batch()))), chance):
                client.session.receive(piece)
            if chance.random() < 0.2:
                client.session.closed()
                clients.remove(client)
        time.advance(chance.choice((0.0, 0.01, 0.2, 1.0, 3.0)))
        newest = max(newest, *(member.state.store.revision for member in cluster.members))
    calm(cluster)
    time.advance(30.0)
    for member in cluster.members:
        assert "error" not in (Client(member).ask(*READ) or {"error": "none"})
    assert len({member.state.store.revision for member in cluster.members}) == 1
    everything = RangeRequest(Span(b"\0", b"\0"))
    shown = [member.state.store.range(everything) for member in cluster.members]
    assert shown[0] == shown[1] == shown[2]
    assert shown[0].revision >= newest
    assert len({tuple(sorted(member.state.lessor.leases)) for member in cluster.members}) == 1
