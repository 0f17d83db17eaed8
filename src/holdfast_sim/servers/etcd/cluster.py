"""A cluster of etcd: one log, and who leads.

1. The log holds what is committed. An entry is committed at the moment it is proposed, if it reaches a leader that
   reaches a majority; replication to others may lag (`EtcdMember.lag_s`).
2. A member takes part if it runs, is not paused, and its disk works. One that has not heard from a leader for an
   election timeout (up to two) stands for election; every try is a new term. A leader that does not reach a majority
   steps down after the same time (etcd's check of the quorum).
3. A leader that does not take part does not step down, for it does not notice: whoever can still speak with it is told
   that it leads. If it is only its disk that hangs, it goes on answering keep-alives, reads that need no majority, and
   its status.
4. A member that comes back with a later term than the leader's deposes it: etcd 3.4 has no pre-vote by default.
5. What a leader with a hanging disk was asked first has reached the others, and its successor commits it; its client is
   told of a time-out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..model import Host, Memory
from .auth import NOBODY, Identity
from .commands import Admin, Alarm, Command, LogEntry, Nothing
from .member import EtcdMember
from .proposal import Proposal
from .requests import Span
from .state import State

FIRST_TERM_NUMBER = 2
REQUEST_BYTES = 1_572_864
TOKEN_TTL_S = 300.0
OPERATOR = Identity("root", 2**62)


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    election_s: float = 1.0
    heartbeat_s: float = 0.1
    max_request_bytes: int = REQUEST_BYTES
    token_ttl_s: float = TOKEN_TTL_S
    signed_tokens: bool = False
    lost_body_chance: float = 0.1
    """That what a stream asks beyond its first 512 bytes is lost: see `http`, rule 4."""
    version: str = "3.4.23"

    @property
    def shortest_ttl_s(self) -> int:
        """etcd grants no shorter lease: one and a half election timeouts, in whole seconds."""
        ticks = round(self.election_s / self.heartbeat_s)
        return math.ceil(3 * ticks // 2 * self.heartbeat_s)

    @property
    def request_timeout_s(self) -> float:
        return 5.0 + 2 * self.election_s


class EtcdCluster:
    def __init__(
        self,
        hosts: Sequence[Host],
        settings: ClusterSettings | None = None,
        cluster_id: int | None = None,
        member_ids: Sequence[int] = (),
    ) -> None:
        self.settings = settings or ClusterSettings()
        chance = hosts[0].chance
        self.id = chance.getrandbits(64) if cluster_id is None else cluster_id
        self.log: list[LogEntry] = []
        self.unlogged_count = 2 * len(hosts) + 1
        """Entries about the members themselves, before ours."""
        self.term = self.term_of_leader = FIRST_TERM_NUMBER - 1
        self.leader: EtcdMember | None = None
        """Who leads, as far as it can be known from outside; it may not be able to commit anything."""
        self._cut: set[frozenset[int]] = set()
        self._carried: list[Proposal] = []
        self._backup: tuple[list[LogEntry], State] | None = None
        ids = member_ids or [chance.getrandbits(64) for _ in hosts]
        self.members = [EtcdMember(self, number, host, ids[number]) for number, host in enumerate(hosts)]
        self._elect(self.members[0])

    # Faults

    def cut(self, one: int, other: int) -> None:
        """These two do not reach each other."""
        self._cut.add(frozenset((one, other)))
        self.reconsider()

    def isolate(self, number: int) -> None:
        for member in self.members:
            if member.number != number:
                self._cut.add(frozenset((number, member.number)))
        self.reconsider()

    def heal(self) -> None:
        self._cut.clear()
        self.reconsider()

    def depose(self) -> EtcdMember:
        """The leader's disk hangs from now on. It goes on believing that it leads: see rule 3."""
        leader = self.leader
        assert leader is not None
        leader.disk_hangs = True
        self.reconsider()
        return leader

    def move_leader(self, number: int) -> None:
        """An election without a pause, as by `etcdctl move-leader`."""
        self._elect(self.members[number])

    def forget_leader(self, member: EtcdMember) -> None:
        """It has stopped, and begins anew as a follower."""
        if self.leader is member:
            self.leader = None

    def stop(self) -> None:
        for member in self.members:
            member.stop()

    def start(self, memory: Memory, new_identity: bool = False) -> None:
        """All members at once. `new_identity`: restored by `etcdctl`, which makes a cluster of its own."""
        if memory is not Memory.ALL:
            self._reset(memory, new_identity)
        for member in self.members:
            member.boot()
        self.reconsider()

    def _reset(self, memory: Memory, new_identity: bool) -> None:
        backup = self._backup if memory is Memory.BACKUP else None
        log, state = backup if backup is not None else ([], State(self.settings.shortest_ttl_s))
        self.log = list(log)
        self.leader = None
        self.term = log[-1].term if log and not new_identity else FIRST_TERM_NUMBER - 1
        if new_identity or backup is None:
            chance = self.members[0].host.chance
            self.id = chance.getrandbits(64)
            for member in self.members:
                member.id = chance.getrandbits(64)
        for member in self.members:
            member.replace_disk(state.copy(), len(log), self.term)

    def back_up(self, member: EtcdMember) -> None:
        self._backup = (self.log[: member.applied], member.state.copy())

    def administer(self, *commands: Admin | Alarm) -> None:
        """Users, roles and alarms, as an operator would make them, at once."""
        for command in commands:
            self._commit(command, OPERATOR)

    def require_login(self, users: dict[str, str], prefix: bytes) -> None:
        """These users, by name with their passwords, may touch the keys with a prefix and nothing else."""
        span = Span(prefix, prefix[:-1] + bytes([prefix[-1] + 1]))
        commands = [Admin("user/add", "root", "root"), Admin("user/grant", "root", "root"), Admin("role/add", "keys")]
        commands.append(Admin("role/grant", "keys", span=span, permission=2))
        for name, password in users.items():
            commands += [Admin("user/add", name, password), Admin("user/grant", name, "keys")]
        self.administer(*commands, Admin("enable"))

    # Who reaches whom

    def linked(self, one: EtcdMember, other: EtcdMember) -> bool:
        return one is other or frozenset((one.number, other.number)) not in self._cut

    def _voters(self, of: EtcdMember) -> list[EtcdMember]:
        if not of.takes_part:
            return []
        return [member for member in self.members if member.takes_part and self.linked(of, member)]

    def has_majority(self, member: EtcdMember) -> bool:
        return 2 * len(self._voters(member)) > len(self.members)

    def _hears_leader(self, member: EtcdMember) -> bool:
        leader = self.leader
        if leader is None or not leader.takes_part or not self.linked(member, leader):
            return False
        return member is not leader or self.has_majority(leader)

    def commits_for(self, member: EtcdMember) -> EtcdMember | None:
        """The leader that can have something committed, or confirmed, that this member asks for."""
        leader = self.leader
        if leader is not None and member.takes_part and self._hears_leader(member) and self.has_majority(leader):
            return leader
        return None

    # Elections

    def reconsider(self) -> None:
        """Something has changed: who hears of whom, what can be committed now, who is to catch up."""
        leader = self.leader
        for member in self.members:
            if not member.takes_part:
                continue
            if self._hears_leader(member):
                if leader is not None and member.term_tried > self.term_of_leader:
                    self._step_down()  # rule 4
                    self.reconsider()
                    return
                member.hear_from(self.leader)
            else:
                member.begin_election_timeout()
        if leader is not None and self.has_majority(leader):
            self._carried = []
            for proposal in leader.take_uncommitted():
                self._commit(proposal.command, proposal.who, proposal.origin, proposal.number)
            for member in self._voters(leader):
                member.replicate(len(self.log))
        for member in self.members:
            member.try_again()

    def _step_down(self) -> None:
        leader, self.leader = self.leader, None
        if leader is not None and leader.takes_part:
            leader.step_down()

    def election_timed_out(self, member: EtcdMember) -> None:
        """It has not heard from a leader for too long."""
        if self.leader is member:
            self._step_down()
        member.lose_leader()
        voters = self._voters(member)
        led = any(self._hears_leader(voter) for voter in voters)
        current = max((voter.replicated for voter in voters), default=0)
        if 2 * len(voters) > len(self.members) and not led and member.replicated >= current:
            self._elect(member)
        else:
            self.term += 1
            member.term_tried = self.term
            self.reconsider()

    def _elect(self, member: EtcdMember) -> None:
        old, carried = self.leader, self._carried
        self._carried = []
        if old is not None and old is not member and old.takes_part:
            old.step_down()
        self.term += 1
        self.leader, self.term_of_leader = member, self.term
        member.replicate(len(self.log), at_once=True)
        member.lead_now()
        for proposal in carried:
            self._commit(proposal.command, proposal.who, proposal.origin, proposal.number)
        self._commit(Nothing())
        self.reconsider()

    # The log

    def propose(self, member: EtcdMember, proposal: Proposal) -> None:
        leader = self.commits_for(member)
        if leader is not None:
            self._commit(proposal.command, proposal.who, member.number, proposal.number)
        elif member.lead is not None and member.lead.serves(member):
            member.lead.uncommitted.append(proposal)
            if member.lead is self.leader and not self._carried and self._reaches_another(member.lead):
                self._carried.append(proposal)  # rule 5

    def _reaches_another(self, leader: EtcdMember) -> bool:
        return any(each.takes_part and self.linked(each, leader) for each in self.members if each is not leader)

    def _commit(self, command: Command, who: Identity = NOBODY, origin: int = -1, proposal: int = 0) -> None:
        leader = self.leader
        assert leader is not None
        entry = LogEntry(len(self.log) + 1, self.term_of_leader, command, who, origin, proposal)
        self.log.append(entry)
        leader.replicate(entry.index, at_once=True)
        for member in self._voters(leader):
            member.replicate(entry.index)
