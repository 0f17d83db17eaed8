"""Linearizable reads of one member.

1. A read asks the leader how far the log is committed; a leader answers once a majority has confirmed that it leads.
   Then the read waits until its member has applied as much.
2. Reads that come while others are asking wait for those, and then ask together: behind one that hangs, all hang.
3. Who asks when another leader is heard of is told so, and has to ask again. Who gets no answer is told of a time-out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..model import Timer
from . import errors
from .errors import RpcError

if TYPE_CHECKING:
    from .member import EtcdMember

Done = Callable[[RpcError | None], None]


class LinearizableReads:
    def __init__(self, member: EtcdMember) -> None:
        self._member = member
        self._asking: list[Done] = []
        self._next: list[Done] = []
        self._confirmed = False
        self._timer: Timer | None = None

    def ask(self, done: Done) -> None:
        self._next.append(done)
        if not self._asking:
            self._begin()

    def _begin(self) -> None:
        self._asking, self._next = self._next, []
        self.try_again()
        if self._asking and not self._confirmed:
            timeout = self._member.cluster.settings.request_timeout_s
            self._timer = self._member.after(timeout, lambda: self._end(errors.TIMED_OUT))

    def try_again(self) -> None:
        member = self._member
        if self._asking and not self._confirmed and member.cluster.commits_for(member) is not None:
            self._confirmed = True
            member.when_applied(len(member.cluster.log), lambda: self._end(None))

    def leader_changed(self) -> None:
        if self._asking and not self._confirmed:
            self._end(errors.LEADER_CHANGED)

    def _end(self, error: RpcError | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        ended, self._asking, self._confirmed = self._asking, [], False
        for done in ended:
            done(error)
        if not self._asking and self._next:
            self._begin()
