"""One member of a cluster: what it believes, what it waits for, and what it has applied.

1. A request that changes something is proposed, and answered when this member has applied it. One that cannot be
   committed now waits; after etcd's own time-out its client is told so, and it may still be carried out.
2. While it is paused nothing happens: bytes and timers wait, and come all at once when it goes on. Then, by chance,
   they are dealt with before it hears that somebody else leads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..model import Host, Memory, Output, Timer
from . import errors
from .auth import Identity, Tokens
from .commands import Command
from .expiry import ExpiryLoop
from .fields import Json, present
from .forwarder import LeaseForwarder
from .proposal import Proposal
from .reads import LinearizableReads
from .session import EtcdSession
from .state import Outcome, State
from .timer import MemberTimer
from .watches import SYNC_EVERY_S, Watches

if TYPE_CHECKING:
    from .cluster import EtcdCluster

LEADERLESS_TIMEOUTS_COUNT = 3
"""After so many election timeouts without a leader the streams end that asked for one."""


class EtcdMember:
    """Implements `model.Server`."""

    def __init__(self, cluster: EtcdCluster, number: int, host: Host, id_: int) -> None:
        self.cluster, self.number, self.host, self.id = cluster, number, host, id_
        self.up, self.paused = True, False
        self.lag_s = 0.0
        """By how much what others have committed comes later."""
        self._disk_hangs = False
        self.term_tried = 0
        self.uncommitted: list[Proposal] = []
        """What it was asked as a leader, and could not have committed."""
        self._proposals = 0
        self.replace_disk(State(cluster.settings.shortest_ttl_s), 0, 0)
        self._life = 0
        self.boot()

    # The machine

    def replace_disk(self, state: State, applied: int, term: int) -> None:
        self.state, self.applied, self.replicated, self.term = state, applied, applied, term
        self.term_tried = term

    def boot(self) -> None:
        """Nothing is known but what is on the disk."""
        settings = self.cluster.settings
        self.up, self.paused, self._disk_hangs = True, False, False
        self._life += 1
        self.lead: EtcdMember | None = None
        self._lead_elected = float("-inf")
        self.tokens = Tokens(settings.token_ttl_s, settings.signed_tokens)
        self.sessions: set[EtcdSession] = set()
        self.watches = Watches(self.state.store, self._sync_later)
        self._phase = self.host.now()
        self._sync_timer: Timer | None = None
        self._election_timer: Timer | None = None
        self._expiry = ExpiryLoop(self)
        self._held: list[Callable[[], None]] = []
        self._waiting: dict[int, Proposal] = {}
        self.reads = LinearizableReads(self)
        self._applied_waits: list[tuple[int, Callable[[], None]]] = []
        self.forwarder = LeaseForwarder(self)
        self.uncommitted = []

    def accept(self, output: Output) -> EtcdSession:
        session = EtcdSession(self, output)
        self.sessions.add(session)
        return session

    def stop(self) -> None:
        self.up = False
        self._life += 1
        for session in self.sessions:
            session.abandon()
        self.sessions = set()
        self.state.lessor = self.state.lessor.copy()
        self.cluster.forget_leader(self)
        self.cluster.reconsider()

    def start(self, memory: Memory) -> None:
        """A member alone that comes back with less than it knew catches up from the others."""
        if len(self.cluster.members) == 1:
            self.cluster.start(memory)
            return
        if memory is not Memory.ALL:
            self.replace_disk(State(self.cluster.settings.shortest_ttl_s), 0, self.term)
        self.boot()
        self.cluster.reconsider()

    def back_up(self) -> None:
        self.cluster.back_up(self)

    def pause(self) -> None:
        self.paused = True
        self.cluster.reconsider()

    def resume(self) -> None:
        self.paused = False
        first = self.host.chance.random() < 0.5
        if not first:
            self.cluster.reconsider()
        held, self._held = self._held, []
        for action in held:
            action()
        if first:
            self.cluster.reconsider()

    @property
    def disk_hangs(self) -> bool:
        return self._disk_hangs

    @disk_hangs.setter
    def disk_hangs(self, hangs: bool) -> None:
        self._disk_hangs = hangs
        self.cluster.reconsider()

    @property
    def takes_part(self) -> bool:
        """In consensus."""
        return self.up and not self.paused and not self._disk_hangs

    def serves(self, other: EtcdMember) -> bool:
        """Whether another member can speak with it."""
        return self.up and not self.paused and self.cluster.linked(self, other)

    def now(self) -> float:
        return self.host.now()

    def after(self, seconds: float, action: Callable[[], None]) -> Timer:
        life, timer = self._life, MemberTimer(action)
        timer.of_host = self.host.after(seconds, lambda: self.run(timer.fire) if life == self._life else None)
        return timer

    def run(self, action: Callable[[], None]) -> None:
        """Now, or when it is no longer paused."""
        if self.paused:
            self._held.append(action)
        else:
            action()

    # Who leads

    def hear_from(self, leader: EtcdMember | None) -> None:
        if self._election_timer is not None:
            self._election_timer.cancel()
            self._election_timer = None
        if self.lead is leader or leader is None:
            return
        if self.state.lessor.primary and leader is not self:
            self.step_down()
        self.lead, self._lead_elected = leader, self.now()
        self.reads.leader_changed()

    def begin_election_timeout(self) -> None:
        if self._election_timer is None:
            span = self.cluster.settings.election_s
            self._election_timer = self.after(span * (1 + self.host.chance.random()), self._election_timed_out)

    def _election_timed_out(self) -> None:
        self._election_timer = None
        if self.takes_part:
            self.cluster.election_timed_out(self)

    def lose_leader(self) -> None:
        if self.lead is not None:
            self.lead = None
            self.after(LEADERLESS_TIMEOUTS_COUNT * self.cluster.settings.election_s, self._end_streams)

    def _end_streams(self) -> None:
        if self.lead is None:
            for session in list(self.sessions):
                session.leader_lost()

    def step_down(self) -> None:
        self.uncommitted = []
        waiting = self.state.lessor.demote()
        self.lose_leader()
        for id_, answer in waiting:
            self.forwarder.renew(id_, answer, lambda _: None)

    def lead_now(self) -> None:
        self.hear_from(self)
        self.state.lessor.promote(self.now(), self.cluster.settings.election_s)
        self._expiry.lease_changed()

    # The log

    def propose(self, command: Command, who: Identity, answer: Callable[[Outcome], None]) -> None:
        self._proposals += 1
        proposal = Proposal(self._proposals, self.number, command, who, answer, self.lead is None, self.now())
        self._waiting[proposal.number] = proposal
        if not proposal.blocked:
            self.cluster.propose(self, proposal)
        if proposal.number in self._waiting:
            timeout = self.cluster.settings.request_timeout_s
            proposal.timer = self.after(timeout, lambda: self._give_up(proposal))

    def _give_up(self, proposal: Proposal) -> None:
        self._waiting.pop(proposal.number, None)
        elected = self._lead_elected
        if proposal.blocked:
            proposal.answer(errors.DEADLINE_EXCEEDED)
        elif elected - 2 * self.cluster.settings.election_s < proposal.begun < elected:
            proposal.answer(errors.TIMED_OUT_BY_LEADER)
        else:
            proposal.answer(errors.TIMED_OUT)

    def take_uncommitted(self) -> list[Proposal]:
        taken, self.uncommitted = self.uncommitted, []
        return taken

    def try_again(self) -> None:
        """What waits for a leader, now that there may be one."""
        if not self.takes_part:
            return
        if self.lead is not None:
            for proposal in [each for each in self._waiting.values() if each.blocked]:
                proposal.blocked = False
                self.cluster.propose(self, proposal)
            self.forwarder.try_again()
        self.reads.try_again()

    def replicate(self, index: int, at_once: bool = False) -> None:
        """The log is committed up to there."""
        if self.lag_s and not at_once:
            self.after(self.lag_s, lambda: self._apply(index))
        else:
            self._apply(index)

    def _apply(self, index: int) -> None:
        if not self.takes_part:
            return
        self.replicated = max(self.replicated, index)
        log = self.cluster.log
        while self.applied < min(index, len(log)):
            entry = log[self.applied]
            self.applied, self.term = entry.index, entry.term
            outcome = self.state.apply(entry, self.now(), self.tokens, self.watches.notify)
            proposal = self._waiting.pop(entry.proposal, None) if entry.origin == self.number else None
            if self.state.lessor.primary:
                self._expiry.lease_changed()
            if proposal is not None:
                if proposal.timer is not None:
                    proposal.timer.cancel()
                proposal.answer(outcome)
        self._run_applied_waits()

    def when_applied(self, index: int, action: Callable[[], None]) -> None:
        self._applied_waits.append((index, action))
        self._run_applied_waits()

    def _run_applied_waits(self) -> None:
        ready = [action for at, action in self._applied_waits if at <= self.applied]
        if ready:
            self._applied_waits = [(at, action) for at, action in self._applied_waits if at > self.applied]
            for action in ready:
                action()

    # Watches

    def _sync_later(self) -> None:
        if self._sync_timer is None:
            passed = (self.now() - self._phase) % SYNC_EVERY_S
            self._sync_timer = self.after(SYNC_EVERY_S - passed, self._sync)

    def _sync(self) -> None:
        self._sync_timer = None
        self.watches.sync()

    # What every reply says

    def header(self, revision: int | None = None) -> Json:
        """`revision`: 0 for none."""
        if revision is None:
            revision = self.state.store.revision
        return present(cluster_id=self.cluster.id, member_id=self.id, revision=revision, raft_term=self.term)
