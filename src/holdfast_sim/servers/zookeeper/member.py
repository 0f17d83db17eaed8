"""One server of the ensemble: its disk, its part, and how it fails.

1. Its disk holds the tree of what it has carried out, and the log of what it has accepted and not carried out yet. Both
   outlive a crash; what was on its way to the disk does not.
2. It carries out what is committed in order, each transaction once it is on its own disk. What came while the disk was
   busy is written together: so a slow disk makes each request late, and not each one later than the one before.
3. Without a leader it serves nobody: it closes all connections, and each new one at the first bytes.
4. A follower leaves a leader that it has not heard from for `sync_limit_ticks`, and learns at once of one that has
   crashed or stepped down.
"""

from __future__ import annotations

import enum
from collections import deque
from typing import TYPE_CHECKING

from ..model import Host, Memory, Output
from .clients import Clients
from .connection import Connection
from .leadership import Leadership, ProposedEntry
from .machine import Machine
from .prepare import Request
from .records import Refused
from .tree import CloseSession, Result, Tree, Txn

if TYPE_CHECKING:
    from .ensemble import Ensemble


class Role(enum.Enum):
    STOPPED = "stopped"
    LOOKING = "looking for a leader"
    FOLLOWING = "following"
    LEADING = "leading"


class Member:
    """A `model.Server`."""

    def __init__(self, ensemble: Ensemble, number: int, host: Host) -> None:
        self.ensemble = ensemble
        self.settings = ensemble.settings
        self.number = number
        self.machine = Machine(host, ensemble.run)
        self.role = Role.STOPPED
        self.term: Leadership | None = None
        self.fsync_s = ensemble.settings.fsync_s
        """How long its disk takes, from and to."""
        self.tree = Tree()
        self.log: deque[ProposedEntry] = deque()
        self.epoch = 0
        self._backup: tuple[Tree, deque[ProposedEntry], int] = Tree(), deque(), 0
        self._reset()

    def _reset(self) -> None:
        """All that is only in memory."""
        self.clients = Clients(self.machine, self.number)
        self.term = None
        self._decided: deque[int | Request] = deque()
        """Zxids that are committed and syncs that have come back, in order, to be carried out."""
        self._touched: dict[int, int] = {}
        self._unwritten: list[ProposedEntry] = []
        """What waits until the disk has written what came before."""
        self._disk_busy = False
        self._heard = 0.0

    # The machine

    def accept(self, output: Output) -> Connection:
        connection = Connection(self, output)
        self.clients.add(connection)
        return connection

    def stop(self) -> None:
        term, role = self.term, self.role
        self.machine.crash()
        self.role = Role.STOPPED
        for connection in self.clients.all:
            connection.open = False
        self._reset()
        self.tree.watches = type(self.tree.watches)()
        if term is not None:
            self.ensemble.crashed(self, term, role is Role.LEADING)

    def start(self, memory: Memory) -> None:
        assert self.role is Role.STOPPED
        if memory is Memory.NOTHING:
            self.tree, self.log, self.epoch = Tree(), deque(), 0
        elif memory is Memory.BACKUP:
            tree, log, self.epoch = self._backup
            self.tree, self.log = tree.copy(), deque(log)
        self.look_first()
        self.ensemble.look_soon(self)

    def look_first(self) -> None:
        self.role, self.machine.up = Role.LOOKING, True

    def back_up(self) -> None:
        self._backup = self.tree.copy(), deque(self.log), self.epoch

    def hang(self) -> None:
        self.machine.hung = True

    def go_on(self) -> None:
        """After `hang`."""
        self.machine.go_on()

    # Its part in the ensemble

    @property
    def serves(self) -> bool:
        return self.term is not None

    @property
    def last_zxid(self) -> int:
        return self.log[-1].zxid if self.log else self.tree.zxid

    def lead(self, epoch: int) -> Leadership:
        """All that it has on disk counts as committed."""
        while self.log:
            self._carry_out(self.log.popleft())
        self.epoch = epoch
        if self.settings.members > 1:
            self.tree.zxid = epoch << 32
        self.role = Role.LEADING
        self.term = Leadership(self, epoch)
        self.term.begin()
        return self.term

    def follow(self, term: Leadership, last_zxid: int) -> None:
        """Throw away what the leader does not have, get what it has."""
        self.tree, self.log, self.epoch = term.leader.tree.copy(), deque(), term.epoch
        self.tree.zxid = last_zxid
        self.role, self.term = Role.FOLLOWING, term
        self._heard = self.machine.host.now()
        term.join(self)
        self.machine.later(self.settings.tick_ms / 1000, self._check_leader)

    def _check_leader(self) -> None:
        if self.role is not Role.FOLLOWING or self.term is None:
            return
        if self.machine.host.now() - self._heard > self.settings.sync_limit_s:
            self.look_again(self.term)
        else:
            self.machine.later(self.settings.tick_ms / 1000, self._check_leader)

    def step_down(self) -> None:
        """The leader has lost most of its followers."""
        if (term := self.term) is not None and self.role is Role.LEADING:
            term.over = True
            self.ensemble.dissolved(term)
            self.look_again(term)

    def look_again(self, term: Leadership) -> None:
        """This leader is lost. It serves nobody until there is another."""
        if self.term is not term:
            return
        if self.role is Role.FOLLOWING:
            term.leave(self)
        self.machine.begin_anew()
        self.role, self.term = Role.LOOKING, None
        self.clients.close_all()
        self._decided.clear()
        self._touched.clear()
        self._unwritten, self._disk_busy = [], False
        self.ensemble.look_soon(self)

    # Transactions

    def log_entry(self, term: Leadership, entry: ProposedEntry) -> None:
        """To disk, and acknowledge. What comes while the disk writes is written together, when it has done."""
        self._unwritten.append(entry)
        if not self._disk_busy:
            self._flush(term)

    def _flush(self, term: Leadership) -> None:
        entries, self._unwritten = self._unwritten, []
        self._disk_busy = bool(entries)
        if entries and (takes := self.machine.between(self.fsync_s)):
            self.machine.later(takes, lambda: self._flushed(term, entries))
        elif entries:
            self._flushed(term, entries)

    def _flushed(self, term: Leadership, entries: list[ProposedEntry]) -> None:
        for entry in entries:
            self._on_disk(term, entry)
        if self.term is term:
            self._flush(term)

    def _on_disk(self, term: Leadership, entry: ProposedEntry) -> None:
        if self.term is not term:
            return
        self.log.append(entry)
        if term.leader is self:
            term.acknowledge(self, entry.zxid)
        else:
            term.from_follower(self, lambda: term.acknowledge(self, entry.zxid))
        self._carry_on()

    def commit(self, zxid: int) -> None:
        self._decided.append(zxid)
        self._carry_on()

    def synced(self, request: Request) -> None:
        self._decided.append(request)
        self._carry_on()

    def _carry_on(self) -> None:
        decided, log = self._decided, self.log
        while decided:
            head = decided[0]
            if isinstance(head, Request):
                decided.popleft()
                self.complete(head, CloseSession(()), Result())
            elif log and log[0].zxid == head:
                decided.popleft()
                self._carry_out(log.popleft())
            else:
                return

    def _carry_out(self, entry: ProposedEntry) -> None:
        result = self.tree.apply(entry.zxid, entry.time_ms, entry.session, entry.txn)
        if self.role is Role.LEADING and self.term is not None:
            self.term.applied(entry)
        self.complete(entry.request, entry.txn, result)
        if isinstance(entry.txn, CloseSession):
            self.clients.close_session(entry.session)
        if self.leads:
            self.clients.answer_reads(entry.session if self.settings.members > 1 else None)

    def complete(self, request: Request, txn: Txn, result: Result) -> None:
        """Answer it, if it came by this server."""
        connection = request.connection
        if connection is not None and connection.member is self:
            connection.complete(request, txn, result)

    # Clients

    def forward(self, request: Request) -> None:
        """To the leader."""
        term = self.term
        assert term is not None
        request.owner = term.owner(self)
        if term.leader is self:
            term.submit(request)
        else:
            self.ensemble.send(self, term.leader, lambda: term.submit(request))

    def touch(self, session: int, timeout_ms: int) -> bool:
        """It was heard of. Whether it is known to have ended is known to the leader only."""
        term = self.term
        assert term is not None
        if term.leader is self:
            return term.sessions.touch(session, timeout_ms, self.machine.now_ms)
        self._touched[session] = timeout_ms
        return True

    @property
    def leads(self) -> bool:
        return self.role is Role.LEADING

    def admit(self, request: Request) -> None:
        """To be answered here. The leader knows which sessions have ended or moved, and what they wait for; a follower
        does not ask."""
        if (term := self.term) is not None and term.leader is self:
            request.waits_for = term.last_of(request.session)
            try:
                term.sessions.check(request.session, term.owner(self))
            except Refused as refusal:
                request.refusal = refusal.code

    def pinged(self, term: Leadership) -> None:
        self._heard = self.machine.host.now()
        touched, self._touched = self._touched, {}
        term.from_follower(self, lambda: term.heard(self, touched))

    def revalidate(self, connection: Connection) -> None:
        term = self.term
        assert term is not None
        if term.leader is self:
            connection.welcome(term.revalidate(self, connection.session, connection.timeout_ms))
            return

        def at_the_leader() -> None:
            valid = term.revalidate(self, connection.session, connection.timeout_ms)
            term.to_follower(self, lambda: connection.welcome(valid))

        term.from_follower(self, at_the_leader)

    def disconnected(self, connection: Connection) -> None:
        self.clients.remove(connection)
        self.tree.watches.forget(connection)
