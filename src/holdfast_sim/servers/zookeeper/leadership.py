"""One leader's time in office: proposals, acknowledgements, commits, syncs, and who is still there.

1. Every write becomes a proposal with the next zxid, even one that is refused. It goes to all followers and to the
   leader's own disk, and is committed, in order, once most of the ensemble have it on disk. Its client
   may be gone by then.
2. A sync from a follower comes back when all that was proposed before it is committed; at once if there is nothing. It
   is not agreed upon: a leader that was deposed and does not know it yet answers it as well.
3. Twice a tick the leader pings its followers, and hears from each which sessions it has heard of. A leader that has
   not heard from most for `sync_limit_ticks` steps down.
4. Containers that have become empty and nodes whose ttl is over are deleted by the leader, now and then.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from . import records
from .machine import Action
from .prepare import Preparation, Request
from .records import Op
from .sessions import Sessions
from .tree import CONTAINER_CODE, CloseSession, Txn, ttl_of

if TYPE_CHECKING:
    from .member import Member


@dataclass(frozen=True, slots=True)
class ProposedEntry:
    """One transaction, as it stands in every server's log."""

    zxid: int
    time_ms: int
    session: int
    txn: Txn
    request: Request = field(compare=False)


@dataclass(slots=True)
class _Proposal:
    entry: ProposedEntry
    on_disk: set[int] = field(default_factory=set)
    syncs: list[Request] = field(default_factory=list)


class Leadership:
    """From an election until the leader steps down or fails."""

    def __init__(self, leader: Member, epoch: int) -> None:
        self.leader = leader
        self._machine = leader.machine
        self.epoch = epoch
        self.over = False
        self.committed = leader.tree.zxid
        self.unapplied: deque[ProposedEntry] = deque()
        """What the leader has proposed and not yet carried out itself."""
        self._zxid = leader.tree.zxid
        self._proposals: deque[_Proposal] = deque()
        self._heard: dict[Member, float] = {}
        """Followers, and when each was heard last."""
        self._owners: dict[Member, object] = {leader: object()}
        self.sessions = Sessions(leader.settings.tick_ms, leader.tree.sessions.items(), self._machine.now_ms)
        self._preparation = Preparation(leader.tree, self.sessions)

    def begin(self) -> None:
        """Its timers."""
        settings = self.leader.settings
        next_tick_ms = settings.tick_ms - self._machine.now_ms % settings.tick_ms
        self._every(settings.tick_ms / 1000, self._expire, next_tick_ms / 1000)
        self._every(settings.container_check_s, self._sweep)
        if settings.quorum > 1:
            self._every(settings.tick_ms / 2000, self._ping)

    def _every(self, seconds: float, action: Action, first_s: float | None = None) -> None:
        def again() -> None:
            if not self.over:
                action()
                self._machine.later(seconds, again)

        self._machine.later(seconds if first_s is None else first_s, again)

    def join(self, follower: Member) -> None:
        """It has the leader's tree; it gets all that is under way."""
        self._heard[follower] = self._machine.host.now()
        self._owners[follower] = object()
        for entry in self.unapplied:
            self.to_follower(follower, partial(follower.log_entry, self, entry))
            if entry.zxid <= self.committed:
                self.to_follower(follower, partial(follower.commit, entry.zxid))

    def leave(self, follower: Member) -> None:
        self._heard.pop(follower, None)

    def owner(self, member: Member) -> object:
        return self._owners.get(member)

    def to_follower(self, follower: Member, action: Action) -> None:
        """Unless it has left by then, even if it has come back."""
        owner = self.owner(follower)

        def arrive() -> None:
            if follower.term is self and self.owner(follower) is owner:
                action()

        self.leader.ensemble.send(self.leader, follower, arrive)

    def from_follower(self, follower: Member, action: Action) -> None:
        owner = self.owner(follower)

        def arrive() -> None:
            if not self.over and self.owner(follower) is owner:
                action()

        self.leader.ensemble.send(follower, self.leader, arrive)

    # Requests

    def submit(self, request: Request) -> None:
        if self.over:
            return
        if request.kind == Op.SYNC:
            self._sync(request)
            return
        self._zxid += 1
        leader = self.leader
        txn = self._preparation.prepare(request, self._zxid, self._machine.now_ms)
        entry = ProposedEntry(self._zxid, round(self._machine.host.calendar() * 1000), request.session, txn, request)
        self._proposals.append(_Proposal(entry))
        self.unapplied.append(entry)
        for follower in self._heard:
            self.to_follower(follower, partial(follower.log_entry, self, entry))
        leader.log_entry(self, entry)

    def _sync(self, request: Request) -> None:
        if self._proposals:
            self._proposals[-1].syncs.append(request)
        else:
            self._synced(request)

    def _synced(self, request: Request) -> None:
        assert request.connection is not None
        member = request.connection.member
        if member in self._heard:
            self.to_follower(member, partial(member.synced, request))

    def acknowledge(self, member: Member, zxid: int) -> None:
        """This member has it on disk."""
        if self.over:
            return
        for proposal in self._proposals:
            if proposal.entry.zxid == zxid:
                proposal.on_disk.add(member.number)
        while self._proposals and len(self._proposals[0].on_disk) >= self.leader.settings.quorum:
            proposal = self._proposals.popleft()
            self.committed = proposal.entry.zxid
            for follower in self._heard:
                self.to_follower(follower, partial(follower.commit, self.committed))
            self.leader.commit(self.committed)
            for request in proposal.syncs:
                self._synced(request)

    def last_of(self, session: int) -> int:
        """The zxid of the last transaction under way of this session; of any, where a server stands alone."""
        alone = self.leader.settings.members == 1
        return next((entry.zxid for entry in reversed(self.unapplied) if alone or entry.session == session), 0)

    def applied(self, entry: ProposedEntry) -> None:
        """The leader has carried it out."""
        self.unapplied.popleft()
        self._preparation.applied(entry.zxid)
        if isinstance(entry.txn, CloseSession):
            self.sessions.remove(entry.session)

    # Sessions

    def revalidate(self, member: Member, session: int, timeout_ms: int) -> bool:
        """A client has come to this member with its session."""
        if not self.sessions.touch(session, timeout_ms, self._machine.now_ms):
            return False
        self.sessions.own(session, self.owner(member))
        return True

    def heard(self, follower: Member, touched: dict[int, int]) -> None:
        """It has answered a ping."""
        if self.over or follower not in self._heard:
            return
        self._heard[follower] = self._machine.host.now()
        for session, timeout_ms in touched.items():
            self.sessions.touch(session, timeout_ms, self._machine.now_ms)

    def _expire(self) -> None:
        for session in self.sessions.expired(self._machine.now_ms):
            self.submit(Request(Op.CLOSE_SESSION, session))

    # Housekeeping

    def _ping(self) -> None:
        leader, limit_s = self.leader, self.leader.settings.sync_limit_s
        there = sum(self._machine.host.now() - heard <= limit_s for heard in self._heard.values())
        if there + 1 < leader.settings.quorum:
            leader.step_down()
            return
        for follower in self._heard:
            self.to_follower(follower, partial(follower.pinged, self))

    def _sweep(self) -> None:
        tree, now_ms = self.leader.tree, round(self._machine.host.calendar() * 1000)
        for path in list(tree.swept):
            node = tree.nodes[path]
            used = node.owner == CONTAINER_CODE and node.creates > 0
            if not node.children and (used or 0 < ttl_of(node.owner) < now_ms - node.mtime_ms):
                self.submit(Request(Op.DELETE_CONTAINER, 0, body=records.text(path)))
