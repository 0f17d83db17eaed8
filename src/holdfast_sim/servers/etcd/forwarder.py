"""Questions about the time of a lease: they do not go through the log.

1. Whom this member believes to lead answers them, by itself and at once, this member included. Nobody asks a majority
   whether it still leads.
2. While nobody is believed to lead, or who is cannot be reached, the question waits; after etcd's own time-out it is
   refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..model import Timer
from . import errors
from .errors import RpcError
from .leases import Lease

if TYPE_CHECKING:
    from .member import EtcdMember

Refuse = Callable[[RpcError], None]


@dataclass(eq=False, slots=True)
class _Question:
    ask: Callable[[EtcdMember], None]
    timer: Timer | None = None


class LeaseForwarder:
    def __init__(self, member: EtcdMember) -> None:
        self._member = member
        self._waiting: list[_Question] = []

    def renew(self, id_: int, answer: Callable[[int], None], refuse: Refuse) -> None:
        def ask(leader: EtcdMember) -> None:
            leader.state.lessor.renew(id_, leader.now(), answer)

        self._ask(_Question(ask), refuse)

    def time_to_live(self, id_: int, answer: Callable[[Lease | None, int], None], refuse: Refuse) -> None:
        def ask(leader: EtcdMember) -> None:
            lease = leader.state.lessor.leases.get(id_)
            answer(lease, lease.seconds_left(leader.now()) if lease else -1)

        self._ask(_Question(ask), refuse)

    def _leader(self) -> EtcdMember | None:
        leader = self._member.lead
        return leader if leader is not None and leader.serves(self._member) and leader.state.lessor.primary else None

    def _ask(self, question: _Question, refuse: Refuse) -> None:
        leader = self._leader()
        if leader is not None:
            question.ask(leader)
            return

        def give_up() -> None:
            self._waiting.remove(question)
            refuse(errors.NO_LEADER if self._member.lead is None else errors.TIMED_OUT)

        self._waiting.append(question)
        question.timer = self._member.after(self._member.cluster.settings.request_timeout_s, give_up)

    def try_again(self) -> None:
        leader = self._leader()
        if leader is not None:
            waiting, self._waiting = self._waiting, []
            for question in waiting:
                if question.timer is not None:
                    question.timer.cancel()
                question.ask(leader)
