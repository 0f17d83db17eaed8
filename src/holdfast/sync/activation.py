# Generated from src/holdfast/aio/activation.py by `make generate`: change that file, not this one.
"""One actor while it handles messages, for threads. The rules are in `recipes.actor_worker`.

1. The actor's lock is held, and its messages are handled one after the other, until there are none, or so many that
   other actors should have their turn, or the workers are to stop.
2. A handler that raises is called again, after a pause, with what it was given before. The actor's other messages wait:
   their order is kept.
3. A handler that is cancelled, or whose lock was lost, has not failed: its try does not count.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._core.backoff import ceiling
from ..errors import HoldfastError, LeaseLost
from ..model import State
from ..observe.log_exception import log_exception
from ..recipes import actor_worker as flows
from ..recipes.actor_options import MAX_ANSWER_BYTES, MAX_STATE_BYTES, ActorPlan
from ..recipes.actor_record import InboxMessage, encode_value
from ..recipes.actor_worker import Claimed
from .base_partitions import finish, wait_event
from .decorator import call_handler
from .lease import Lease

if TYPE_CHECKING:
    from .coordinator import Coordinator

TURN_COUNT = 100
"""So many messages of one actor are handled before others have their turn."""
BACKOFF_CAP_S = 30.0


class Actor:
    """What a handler is given: the actor whose message it handles. Assign `state`; what is returned is the answer."""

    __slots__ = ("key", "lease", "message_id", "name", "state", "tries")

    def __init__(self, name: str, key: str, state: object, message: InboxMessage, lease: Lease) -> None:
        self.name = name
        """Of the actors."""
        self.key = key
        """Of this actor."""
        self.state: Any = state
        """What JSON can hold; None at first. It is kept when the handler returns, together with the acknowledgement."""
        self.message_id = message.id
        """The same when the message is tried again: for effects that are deduplicated elsewhere."""
        self.tries = message.tries
        """How often this message has been tried, this try included."""
        self.lease = lease
        """The lease of the actor's lock: its `token` is for fences elsewhere, and `lost` says when to stop."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {self.key!r}>"


Handler = Callable[[Actor, Any], object]


class Activation:
    """Handles the messages of one actor, as long as there are some."""

    def __init__(
        self, coordinator: Coordinator, plan: ActorPlan, handler: Handler, key: str, version: int, over: threading.Event
    ) -> None:
        self._coordinator = coordinator
        self._plan = plan
        self._handler = handler
        self._key = key
        self._version = version
        self._over = over
        self._begun = False
        """Whether a try was counted that has come to no end."""

    def run(self) -> bool:
        """False if another worker has the actor."""
        plan = self._plan
        lock = self._coordinator.lock(plan.lock_of(self._key), ttl=plan.ttl)
        lease = lock.try_acquire()
        if lease is None:
            return False
        with lease:
            claimed = self._coordinator._run(
                flows.claim(self._coordinator._core, plan, self._key, self._version, lease.token, lease.owner)
            )
            self._begun = claimed.record.head is not None
            try:
                self._work(claimed, lease)
            finally:
                if self._begun:
                    finish(lambda: self._take_back(claimed))
        return True

    def _work(self, claimed: Claimed, lease: Lease) -> None:
        core, plan = self._coordinator._core, self._plan
        left = TURN_COUNT
        while (head := claimed.record.head) is not None and self._begun:
            left -= 1
            if head.tries > plan.tries:
                error = head.error or f"{plan.tries} processes have ended while they handled it"
                self._give_up(claimed, error, left, lease)
            else:
                self._handle(claimed, head, left, lease)
        self._coordinator._run(flows.let_go(core, plan, claimed))

    def _handle(self, claimed: Claimed, head: InboxMessage, left: int, lease: Lease) -> None:
        core, plan = self._coordinator._core, self._plan
        of = f"{self._key!r} ({plan.name!r})"
        actor = Actor(plan.name, self._key, json.loads(claimed.record.state), head, lease)
        try:
            result = call_handler(self._handler, actor, json.loads(head.body))
            state = encode_value(actor.state, MAX_STATE_BYTES, f"the state of {of}")
            answer = encode_value(result, MAX_ANSWER_BYTES, f"the answer of {of}") if head.asked else None
        except Exception as error:
            if isinstance(error, LeaseLost) and error.token == lease.token:
                raise
            log_exception("try %d of %d of message %s of %s failed", head.tries, plan.tries, head.id, of)
            what = f"{type(error).__name__}: {error}"
            if head.tries >= plan.tries:
                self._give_up(claimed, what, left, lease)
            else:
                self._begun = False
                pause = ceiling(head.tries - 1, plan.backoff, BACKOFF_CAP_S)
                wait_event(self._over, random.uniform(pause / 2, pause))
                begin = self._go_on(1, lease)
                self._coordinator._run(flows.note_failure(core, plan, claimed, what, begin))
                self._begun = begin
            return
        begin = self._go_on(left, lease)
        self._coordinator._run(flows.acknowledge(core, plan, claimed, state, answer, begin))
        self._wake_asker(head)
        self._begun = begin and claimed.record.head is not None

    def _give_up(self, claimed: Claimed, error: str, left: int, lease: Lease) -> None:
        begin, head = self._go_on(left, lease), claimed.record.head
        self._coordinator._run(flows.give_up(self._coordinator._core, self._plan, claimed, error, begin))
        if head is not None:
            self._wake_asker(head)
        self._begun = begin and claimed.record.head is not None

    def _wake_asker(self, message: InboxMessage) -> None:
        """Whoever waits for the answer in this coordinator need not look for it by chance."""
        if (event := self._coordinator._core.answers.get(message.id)) is not None:
            event.set()

    def _go_on(self, left: int, lease: Lease) -> bool:
        """Whether to begin with the next message."""
        return left > 0 and not self._over.is_set() and lease.state is not State.LOST

    def _take_back(self, claimed: Claimed) -> None:
        try:
            self._coordinator._run(flows.take_back(self._coordinator._core, self._plan, claimed))
        except HoldfastError:
            pass  # it has another worker by now, or will be found with one try more
