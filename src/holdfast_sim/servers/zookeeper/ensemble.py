"""The servers of an ensemble, the network between them, and elections.

1. `Ensemble(hosts)` is up, with a leader. One host makes a server that stands alone: it has no epochs, and commits what
   is on its disk.
2. Between two servers messages arrive in order, each after `link_s`. A link that is cut holds what is sent, until it is
   mended; whoever has left the leader by then does not take it any more.
3. Servers without a leader look for one. The first that finds most of the ensemble looking, too, has the one with the
   latest log lead; a leader that is there is joined. A server that hangs or is cut off is not found.
4. A new leader begins a new epoch, and counts that as the last transaction; its followers do so with the first one.
5. With delays of zero everything is done before `Session.receive` returns.

Known to differ from ZooKeeper 3.8:
- Joining a leader and getting its data take no time, and an election takes `election_s`.
- A server carries out a transaction when it is on its own disk; a real one does not wait for its own.
- Children are listed in another order (both are of no use to anybody).
- There are no persistent watches, no getEphemerals, multiRead, whoAmI, reconfig, SASL, quotas, observers, read-only
  servers, four-letter words, nor throttling: what is not there is answered as an unknown operation.
- Containers are deleted all at once, not one every 6 ms. A session's ephemeral nodes are deleted in the order in which
  they were made.
- A `check` outside of a `multi` is answered; a real server answers only its refusal, and nothing if all is well.
- A request that cannot be read takes a zxid whichever it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from ..model import Host
from .leadership import Leadership
from .member import Member, Role

Span = tuple[float, float]
"""From and to, in seconds."""


@dataclass(slots=True)
class EnsembleSettings:
    """As in `zoo.cfg`, and how slow things are."""

    members: int = 3
    tick_ms: int = 2000
    min_session_ms: int = 0
    """2 ticks if 0, and (`max_session_ms`) 20."""
    max_session_ms: int = 0
    sync_limit_ticks: int = 5
    container_check_s: float = 60.0
    link_s: Span = (0.0, 0.0)
    fsync_s: Span = (0.0, 0.0)
    election_s: Span = (0.2, 0.6)

    def session_ms(self, asked_ms: int) -> int:
        least, most = self.min_session_ms or 2 * self.tick_ms, self.max_session_ms or 20 * self.tick_ms
        return min(max(asked_ms, least), most)

    @property
    def quorum(self) -> int:
        return self.members // 2 + 1

    @property
    def sync_limit_s(self) -> float:
        return self.sync_limit_ticks * self.tick_ms / 1000


@dataclass(slots=True)
class _Link:
    """One way between two servers."""

    messages: deque[Callable[[], None]] = field(default_factory=deque)
    free_at: float = 0.0
    held: int | None = None
    """While it is cut: how many of the messages would have arrived."""


class Ensemble:
    """`members[0]` has the number 1."""

    def __init__(self, hosts: Sequence[Host], settings: EnsembleSettings | None = None) -> None:
        self.settings = settings or EnsembleSettings()
        self.settings.members = len(hosts)
        self._ready: deque[Callable[[], None]] = deque()
        self._running = False
        self._links: dict[tuple[int, int], _Link] = {}
        self.members = [Member(self, number, host) for number, host in enumerate(hosts, 1)]
        for member in self.members:
            member.look_first()
        self.look(self.members[-1])

    @property
    def leader(self) -> Member | None:
        """The one with the latest epoch, if there is one."""
        leaders = [member for member in self.members if member.role is Role.LEADING]
        return max(leaders, key=lambda member: member.epoch, default=None)

    def run(self, action: Callable[[], None]) -> None:
        """Now, or when what is being done is done: nothing interrupts anything."""
        self._ready.append(action)
        if self._running:
            return
        self._running = True
        try:
            while self._ready:
                self._ready.popleft()()
        finally:
            self._running = False

    # The network between them

    def _link(self, sender: Member, receiver: Member) -> _Link:
        return self._links.setdefault((sender.number, receiver.number), _Link())

    def send(self, sender: Member, receiver: Member, action: Callable[[], None]) -> None:
        link, now = self._link(sender, receiver), sender.machine.host.now()
        link.messages.append(action)
        delay = sender.machine.between(self.settings.link_s)
        if delay == 0 and link.free_at <= now:
            self.run(lambda: self._arrive(link, receiver))
            return
        link.free_at = max(now + delay, link.free_at)
        receiver.machine.host.after(link.free_at - now, lambda: self._arrive(link, receiver))

    def _arrive(self, link: _Link, receiver: Member) -> None:
        if link.held is not None:
            link.held += 1
        elif link.messages:
            receiver.machine.do(link.messages.popleft())

    def cut(self, one: Member, other: Member) -> None:
        for pair in ((one, other), (other, one)):
            link = self._link(*pair)
            link.held = link.held or 0

    def mend(self, one: Member, other: Member) -> None:
        for sender, receiver in ((one, other), (other, one)):
            link = self._link(sender, receiver)
            held, link.held = link.held or 0, None
            for _ in range(held):
                self._arrive(link, receiver)

    def isolate(self, member: Member) -> None:
        """From all others; its clients still reach it."""
        for other in self.members:
            if other is not member:
                self.cut(member, other)

    def rejoin(self, member: Member) -> None:
        for other in self.members:
            if other is not member:
                self.mend(member, other)

    def _reaches(self, one: Member, other: Member) -> bool:
        if one is other:
            return True
        return other.machine.up and not other.machine.hung and self._link(one, other).held is None

    # Elections

    def look_soon(self, member: Member) -> None:
        member.machine.later(member.machine.between(self.settings.election_s), lambda: self.look(member))

    def look(self, member: Member) -> None:
        if member.role is not Role.LOOKING:
            return
        found = [other for other in self.members if self._reaches(member, other)]
        leaders = [other for other in found if other.role is Role.LEADING and other.epoch >= member.epoch]
        looking = [other for other in found if other.role is Role.LOOKING]
        if leaders:
            leader = max(leaders, key=lambda other: other.epoch)
            assert leader.term is not None
            member.follow(leader.term, leader.tree.zxid)
            return
        leader = max(looking, key=lambda other: (other.epoch, other.last_zxid, other.number))
        voters = [other for other in looking if self._reaches(leader, other)]
        if len(voters) < self.settings.quorum:
            self.look_soon(member)
            return
        last_zxid = leader.last_zxid
        term = leader.lead(max(other.epoch for other in voters) + 1)
        for other in voters:
            if other is not leader:
                other.follow(term, last_zxid)

    def crashed(self, member: Member, term: Leadership, led: bool) -> None:
        """Those who were connected to it notice."""
        if led:
            term.over = True
            self.dissolved(term)
        elif self._link(member, term.leader).held is None:
            term.leader.machine.do(partial(term.leave, member))

    def dissolved(self, term: Leadership) -> None:
        """The leader has ended its connections to its followers."""
        for member in self.members:
            if member.term is term and member is not term.leader and self._link(term.leader, member).held is None:
                member.machine.do(partial(member.look_again, term))
