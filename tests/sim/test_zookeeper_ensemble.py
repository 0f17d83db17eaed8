"""The simulated ZooKeeper ensemble in trouble: what real servers do, but not on demand."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from holdfast_sim.servers.model import Memory
from holdfast_sim.servers.zookeeper import Ensemble, EnsembleSettings, Member, Role, records
from holdfast_sim.servers.zookeeper.access import password_of
from holdfast_sim.servers.zookeeper.leadership import Leadership
from holdfast_sim.servers.zookeeper.records import Acl, Code, Op, RecordReader, acls, buffer, flag, integer, long, text
from tests.likeness.play import Recorder
from tests.likeness.virtual import VirtualTime

OPEN = acls((Acl(31, "world", "anyone"),))
TIMEOUT_MS = 8000
EPHEMERAL = 1


class Client:
    """Its answers, by number; events, as (kind, path)."""

    def __init__(self, member: Member, session: int = 0, seen: int = 0, timeout_ms: int = TIMEOUT_MS) -> None:
        self.member = member
        self._output = Recorder()
        self._connection = member.accept(self._output)
        self._xid = 0
        self._welcomed = False
        self.session = self.timeout_ms = 0
        self.answers: dict[int, tuple[int, int, bytes]] = {}
        self.events: list[tuple[int, str]] = []
        password = password_of(session) if session else bytes(16)
        body = integer(0) + long(seen) + integer(timeout_ms) + long(session) + buffer(password) + flag(False)
        self._connection.receive(records.frame(body))
        self.take_in()

    @property
    def ended(self) -> bool:
        return self._output.ended

    def ask(self, kind: int, body: bytes = b"") -> int:
        """Answers with the number of the request."""
        self._xid += 1
        self._connection.receive(records.frame(integer(self._xid) + integer(kind) + body))
        self.take_in()
        return self._xid

    def call(self, kind: int, body: bytes = b"") -> tuple[int, int, bytes]:
        """The zxid, code and rest of the answer, which is there at once."""
        return self.answers[self.ask(kind, body)]

    def take_in(self) -> None:
        data = bytes(self._output.data)
        self._output.data.clear()
        while data:
            size = int.from_bytes(data[:4], "big")
            reader, data = RecordReader(data[4 : 4 + size]), data[4 + size :]
            if not self._welcomed:
                self._welcomed = True
                reader.integer()
                self.timeout_ms, self.session = reader.integer(), reader.long()
                continue
            xid, zxid, code = reader.integer(), reader.long(), reader.integer()
            if xid == -1:
                kind, _, path = reader.integer(), reader.integer(), reader.text()
                self.events.append((kind, path))
            else:
                self.answers[xid] = zxid, code, reader._record[16:]

    def has(self, xid: int) -> bool:
        self.take_in()
        return xid in self.answers

    def sees(self, path: str) -> bool:
        return self.call(Op.EXISTS, text(path) + flag(False))[1] == Code.OK

    def disconnect(self) -> None:
        self._connection.closed()


def creating(path: str, flags: int = 0) -> bytes:
    return text(path) + buffer(b"") + OPEN + integer(flags)


class House:
    """Three servers, and the time they share."""

    def __init__(self, seed: int = 0) -> None:
        self.time = VirtualTime(1_000_000.0, Random(seed))
        self.ensemble = Ensemble([self.time] * 3, EnsembleSettings())
        leader = self.ensemble.leader
        assert leader is not None
        self.leader = leader
        self.followers = [member for member in self.ensemble.members if member is not leader]

    def slow(self, seconds: float, *members: Member) -> None:
        for member in members or self.ensemble.members:
            member.fsync_s = seconds, seconds

    def restart_all(self, memory: Memory) -> None:
        for member in self.ensemble.members:
            member.stop()
        for member in self.ensemble.members:
            member.start(memory)
        self.time.advance(1.0)


@pytest.fixture
def house() -> House:
    return House()


def test_a_create_is_committed_after_its_client_has_gone(house: House) -> None:
    first, second = house.followers
    client = Client(first)
    house.slow(0.3)
    client.ask(Op.CREATE2, creating("/a", EPHEMERAL))
    client.disconnect()
    again = Client(second, client.session)
    assert again.session == client.session
    assert not again.sees("/a")
    sync = again.ask(Op.SYNC, text("/"))
    assert not again.has(sync)
    house.time.advance(1.0)
    assert again.has(sync)
    assert again.sees("/a")


def test_a_sync_at_the_leader_waits_for_its_own_session_only(house: House) -> None:
    client, other = Client(house.followers[0]), Client(house.leader)
    house.slow(0.3)
    client.ask(Op.CREATE2, creating("/a", EPHEMERAL))
    client.disconnect()
    again = Client(house.leader, client.session)
    sync = again.ask(Op.SYNC, text("/"))
    assert not again.has(sync)
    assert other.call(Op.SYNC, text("/"))[1] == Code.OK
    assert not other.sees("/a")
    house.time.advance(1.0)
    assert again.has(sync)
    assert again.sees("/a")


def test_a_follower_lags_until_it_is_synced(house: House) -> None:
    writer, reader = Client(house.leader), Client(house.followers[0])
    house.slow(0.5, house.followers[0])
    assert writer.call(Op.CREATE2, creating("/a"))[1] == Code.OK
    assert not reader.sees("/a")
    sync = reader.ask(Op.SYNC, text("/"))
    house.time.advance(0.6)
    assert reader.has(sync)
    assert reader.sees("/a")


def test_what_only_the_old_leader_has_is_lost_and_what_most_have_stays(house: House) -> None:
    client = Client(house.leader)
    house.slow(0.5, *house.followers)
    assert not client.has(client.ask(Op.CREATE2, creating("/only-here")))
    house.leader.stop()
    house.time.advance(1.0)
    house.slow(0.0)
    new = house.ensemble.leader
    assert new is not None
    other = Client(new)
    assert other.call(Op.CREATE2, creating("/new"))[0] >> 32 == 2
    house.leader.start(Memory.ALL)
    house.time.advance(1.0)
    assert house.leader.role is Role.FOLLOWING
    back = Client(house.leader, client.session)
    assert back.session == client.session
    assert back.sees("/new")
    assert not back.sees("/only-here")


def test_followers_close_their_clients_when_the_leader_is_lost(house: House) -> None:
    client = Client(house.followers[0])
    house.leader.stop()
    assert client.ended
    assert Client(house.followers[0], client.session).ended
    house.time.advance(1.0)
    assert Client(house.followers[0], client.session).session == client.session


def test_without_a_quorum_nobody_is_served(house: House) -> None:
    client = Client(house.leader)
    for follower in house.followers:
        follower.stop()
    house.time.advance(house.leader.settings.sync_limit_s)
    assert client.ended
    assert Client(house.leader).ended


def test_a_leader_that_hung_is_deposed_and_may_answer_once_more() -> None:
    """Its clients or its clock may be first: by chance."""
    assert {answers_after_a_hang(seed) for seed in range(8)} == {True, False}


def answers_after_a_hang(seed: int) -> bool:
    house = House(seed)
    client = Client(house.leader)
    house.leader.hang()
    house.time.advance(30.0)
    new = house.ensemble.leader
    assert new is not None
    assert new is not house.leader
    assert Client(new).call(Op.CREATE2, creating("/a"))[1] == Code.OK
    sync = client.ask(Op.SYNC, text("/"))
    write = client.ask(Op.CREATE2, creating("/b"))
    house.leader.go_on()
    house.time.advance(2.0)
    assert client.ended
    assert not client.has(write)
    assert house.leader.role is Role.FOLLOWING
    assert not Client(house.leader).sees("/b")
    return client.has(sync)


def test_a_leader_that_is_cut_off_steps_down_and_comes_back(house: House) -> None:
    client, other = Client(house.leader), Client(house.followers[0])
    house.ensemble.isolate(house.leader)
    write = client.ask(Op.CREATE2, creating("/a"))
    house.time.advance(30.0)
    assert client.ended
    assert other.ended
    assert not client.has(write)
    house.ensemble.rejoin(house.leader)
    house.time.advance(1.0)
    assert house.leader.role is Role.FOLLOWING
    assert not Client(house.leader).sees("/a")


def test_a_backup_forgets_and_turns_away_who_has_seen_more(house: House) -> None:
    client = Client(house.leader)
    for member in house.ensemble.members:
        member.back_up()
    zxid = client.call(Op.CREATE2, creating("/a"))[0]
    house.restart_all(Memory.BACKUP)
    zxid_now = Client(house.leader).call(Op.SYNC, text("/"))[0]
    assert zxid_now < zxid + (1 << 32)
    back = Client(house.leader, client.session, seen=zxid + (1 << 40))
    assert back.ended
    assert Client(house.leader, client.session).session == client.session
    assert not Client(house.leader).sees("/a")


def test_servers_that_are_wiped_know_nobody(house: House) -> None:
    client = Client(house.leader)
    house.restart_all(Memory.NOTHING)
    back = Client(house.leader, client.session)
    assert (back.session, back.timeout_ms) == (0, 0)
    assert back.ended


@pytest.mark.parametrize(("asked_ms", "granted_ms"), [(1, 4000), (5000, 5000), (10**6, 40_000)])
def test_a_session_expires_after_its_timeout_rounded_up_to_a_tick(house: House, asked_ms: int, granted_ms: int) -> None:
    house.time.advance(0.5)
    client, other = Client(house.leader, timeout_ms=asked_ms), Client(house.followers[0], timeout_ms=40_000)
    assert client.timeout_ms == granted_ms
    client.call(Op.CREATE2, creating("/a", EPHEMERAL))
    end = (500 + granted_ms) // 2000 * 2 + 2
    beat(house, other, end - 0.5 - 0.001)
    assert other.sees("/a")
    house.time.advance(0.002)
    assert not other.sees("/a")
    assert client.ended
    assert Client(house.leader, client.session).session == 0


def beat(house: House, client: Client, seconds: float) -> None:
    """Let time pass, with a sign of life every second."""
    while seconds > 0:
        house.time.advance(min(1.0, seconds))
        client.call(Op.EXISTS, text("/") + flag(False))
        seconds -= 1.0


def test_a_follower_passes_signs_of_life_on_twice_a_tick(house: House) -> None:
    client = Client(house.followers[0], timeout_ms=4000)
    beat(house, client, 30.0)
    assert not client.ended
    house.followers[0].hang()
    house.time.advance(6.1)
    assert client.session not in house.leader.tree.sessions


def test_a_late_write_by_way_of_the_old_server_is_refused(house: House) -> None:
    old = Client(house.followers[0])
    new = Client(house.followers[1], old.session)
    assert old.call(Op.EXISTS, text("/") + flag(False))[1] == Code.OK
    write = old.ask(Op.CREATE2, creating("/a"))
    assert old.ended
    assert not old.has(write)
    assert not new.sees("/a")
    assert new.call(Op.CREATE2, creating("/a"))[1] == Code.OK


def test_empty_containers_are_removed_once_they_were_used(house: House) -> None:
    client = Client(house.leader, timeout_ms=40_000)
    client.call(Op.CREATE_CONTAINER, creating("/used", 4))
    client.call(Op.CREATE_CONTAINER, creating("/new", 4))
    client.call(Op.CREATE2, creating("/used/a"))
    client.call(Op.DELETE, text("/used/a") + integer(-1))
    beat(house, client, 61.0)
    assert not client.sees("/used")
    assert client.sees("/new")


def strike(house: House, member: Member, chance: Random) -> None:
    """A fault begins or ends."""
    match chance.choice(("crash", "hang", "cut", "heal")):
        case "crash" if member.role is not Role.STOPPED:
            member.stop()
        case "hang" if member.role is not Role.STOPPED:
            member.hang()
        case "cut":
            house.ensemble.isolate(member)
        case _:
            heal(house)


def heal(house: House) -> None:
    for member in house.ensemble.members:
        house.ensemble.rejoin(member)
        if member.machine.hung:
            member.go_on()
        elif member.role is Role.STOPPED:
            member.start(Memory.ALL)


def create_in_trouble(seed: int) -> int:
    """Whatever crashes, hangs or is cut off: a create that was answered is there in the end, on all servers.

    Answers with how many there were.
    """
    chance, house = Random(seed), House(seed)
    house.ensemble.settings.link_s = 0.0, 0.05
    for member in house.ensemble.members:
        member.fsync_s = 0.0, 0.4
    asked: list[tuple[Client, int, str]] = []
    for number in range(60):
        member = chance.choice(house.ensemble.members)
        if chance.random() < 0.3:
            strike(house, member, chance)
        elif member.serves:
            client = Client(member)
            house.time.advance(1.0)
            client.take_in()
            if client.session and not client.ended and member.serves:
                asked.append((client, client.ask(Op.CREATE2, creating(f"/{number}")), f"/{number}"))
        house.time.advance(chance.choice((0.1, 0.5, 3.0, 12.0)))
    made = [path for client, xid, path in asked if client.has(xid) and client.answers[xid][1] == Code.OK]
    heal(house)
    house.time.advance(60.0)
    trees = [member.tree for member in house.ensemble.members]
    for tree in trees:
        assert tree.nodes.keys() == trees[0].nodes.keys(), f"seed {seed}: trees differ"
    lost = [path for path in made if path not in trees[0].nodes]
    assert lost == [], f"seed {seed}: {lost} are lost of {len(made)}"
    return len(made)


SEEDS = 60


def test_nothing_that_was_acknowledged_is_lost() -> None:
    assert sum(map(create_in_trouble, range(SEEDS))) > 10 * SEEDS


def commit_at_once(self: Leadership, member: Member, zxid: int) -> None:
    """The leader takes its own disk for most of the ensemble."""
    for each in self.leader.ensemble.members:
        acknowledge(self, each, zxid)


def elect_the_first(self: Member) -> int:
    """Whatever it has in its log."""
    return 0


acknowledge = Leadership.acknowledge


@pytest.mark.parametrize(
    ("where", "name", "planted"),
    [(Leadership, "acknowledge", commit_at_once), (Member, "last_zxid", property(elect_the_first))],
)
def test_planted_bugs_lose_something(
    monkeypatch: pytest.MonkeyPatch, where: type, name: str, planted: Callable[..., object] | property
) -> None:
    monkeypatch.setattr(where, name, planted)
    with pytest.raises(AssertionError, match=r"seed \d+"):
        test_nothing_that_was_acknowledged_is_lost()
