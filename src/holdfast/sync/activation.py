# Generated from src/holdfast/aio/activation.py by `make generate`: change that file, not this one.
"""One actor while it handles messages, for threads. The rules are in `recipes.actor_worker`.

1. The actor's lock is held, and its messages are handled one after the other, until there are none, or so many that
   other actors should have their turn, or the workers are to stop.
2. A handler that raises is called again, after a pause, with what it was given before. The actor's other messages wait:
   their order is kept.
3. A handler that is cancelled, or whose lock was lost, has not failed: its try does not count.
4. Messages of a handler that is quick are acknowledged in groups, which grow while it stays quick: by one write for all
   of them, once there is no other message, or one to which somebody waits for the answer, or `GROUP_S` has passed. A
   handler that takes longer than `QUICK_S` has each of its messages acknowledged at once; so has a message that is the
   only one to be tried (`tries=1`).
5. An actor without messages is kept for another moment (`IDLE_S`), unless others wait for its place. Where it is told
   something from elsewhere, too, one looks for that meanwhile.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._core.actor_exchange import ActiveWorker
from .._core.backoff import ceiling
from ..clock import now
from ..errors import HoldfastError, LeaseLost
from ..model import State
from ..observe.log_exception import error_text, log_exception
from ..recipes import actor_worker as flows
from ..recipes.actor_options import MAX_ANSWER_BYTES, MAX_STATE_BYTES, ActorPlan
from ..recipes.actor_record import Handled, InboxMessage, encode_value
from ..recipes.actor_worker import Claimed
from ..recipes.names import in_family
from .base_partitions import finish, wait_event
from .decorator import call_handler
from .lease import Lease

if TYPE_CHECKING:
    from .coordinator import Coordinator

TURN_COUNT = 100
"""So many messages of one actor are handled before others have their turn."""
GROUP_COUNT = 64
GROUP_S, GATHER_S = 0.02, 0.001
"""For how long messages are handled before they are acknowledged; how long a group waits for another one."""
QUICK_S = 0.002
IDLE_S, LOOK_S = 0.05, 0.005
"""How long an actor without messages is kept; the first pause between two looks, if others tell it something, too."""
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
        self.tries = message.tries + 1
        """How often this message has been tried, this try included."""
        self.lease = lease
        """The lease of the actor's lock: its `token` is for fences elsewhere, and `lost` says when to stop."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {self.key!r}>"


Handler = Callable[[Actor, Any], object]


class Activation:
    """Handles the messages of one actor, as long as there are some. `is_wanted`: others wait for its place."""

    def __init__(
        self,
        coordinator: Coordinator,
        plan: ActorPlan,
        handler: Handler,
        key: str,
        version: int,
        over: threading.Event,
        is_wanted: Callable[[], bool],
    ) -> None:
        self._coordinator = coordinator
        self._plan = plan
        self._handler = handler
        self._key = key
        self._version = version
        self._over = over
        self._is_wanted = is_wanted
        self._wake = threading.Event()
        self._worker = ActiveWorker(self._wake, coordinator._actors.current(False))
        self._left = TURN_COUNT
        self._limit = 1
        """How large the next group may be."""
        self._done: list[Handled] = []
        """What is handled, and not acknowledged."""
        self._state = ""
        """After that."""
        self._offset = 0
        """Where the next message begins in the inbox."""
        self._since, self._busy = 0.0, 0.0
        """When the first of them was begun, and how long it took to handle them."""

    def run(self) -> bool:
        """False if another worker has the actor."""
        plan, core = self._plan, self._coordinator._core
        lock = self._coordinator.lock(in_family(plan.lock_of(self._key), plan.lock_of("*")), ttl=plan.ttl)
        lease = lock.try_acquire()
        if lease is None:
            return False
        full, workers = plan.record_of(self._key), core.actors.workers
        with lease:
            workers[full] = self._worker
            try:
                claimed = self._coordinator._run(
                    flows.claim(core, plan, self._key, self._version, lease.token, lease.owner)
                )
                try:
                    self._work(claimed, lease)
                finally:
                    if self._done or claimed.record.begun:
                        finish(lambda: self._take_back(claimed))
            finally:
                workers.pop(full, None)
        return True

    def _work(self, claimed: Claimed, lease: Lease) -> None:
        core, plan, run = self._coordinator._core, self._plan, self._coordinator._run
        while True:
            record = claimed.record
            count = len(self._done)
            if count < min(record.waiting, record.begun):
                self._handle(claimed, lease)
            elif count:
                if not self._gather(claimed):
                    self._flush(claimed, self._next_limit(lease))
            elif record.waiting and (limit := self._next_limit(lease)):
                run(flows.acknowledge(core, plan, claimed, record.state, (), limit))
            elif record.waiting or not self._idle(claimed, lease):
                run(flows.let_go(core, plan, claimed))
                if not (claimed.record.waiting and self._goes_on(lease)):
                    return

    def _handle(self, claimed: Claimed, lease: Lease) -> None:
        plan, of = self._plan, f"{self._key!r} ({self._plan.name!r})"
        message, end = claimed.record.message_at(self._offset)
        if message.tries >= plan.tries:
            error = message.error or f"{plan.tries} processes have ended while they handled it"
            if self._done:
                self._flush(claimed, 1)
            self._give_up(claimed, message.tries, error, lease)
            return
        began = now()
        self._since = self._since or began
        actor = Actor(plan.name, self._key, json.loads(self._state or claimed.record.state), message, lease)
        try:
            result = call_handler(self._handler, actor, json.loads(message.body))
            state = encode_value(actor.state, MAX_STATE_BYTES, f"the state of {of}")
            answer = encode_value(result, MAX_ANSWER_BYTES, f"the answer of {of}") if message.asked else None
        except Exception as error:
            if isinstance(error, LeaseLost) and error.token == lease.token:
                raise
            log_exception("try %d of %d of message %s of %s failed", actor.tries, plan.tries, message.id, of)
            self._fail(claimed, message, error_text(error), lease)
            return
        self._done.append(Handled(message.id, answer))
        self._state, self._offset = state, end
        ended = now()
        self._busy += ended - began
        if message.asked or self._worker.tells_itself or ended > self._since + GROUP_S or not self._goes_on(lease):
            self._flush(claimed, self._next_limit(lease))

    def _fail(self, claimed: Claimed, message: InboxMessage, error: str, lease: Lease) -> None:
        core, plan = self._coordinator._core, self._plan
        if self._done:
            self._flush(claimed, 1)
        if message.tries + 1 >= plan.tries:
            self._give_up(claimed, message.tries + 1, error, lease)
            return
        self._coordinator._run(flows.note_failure(core, plan, claimed, error))
        pause = ceiling(message.tries, plan.backoff, BACKOFF_CAP_S)
        wait_event(self._over, random.uniform(pause / 2, pause))
        self._limit = 1

    def _give_up(self, claimed: Claimed, tries: int, error: str, lease: Lease) -> None:
        core, plan = self._coordinator._core, self._plan
        self._left -= 1
        limit = 1 if self._goes_on(lease) else 0
        handled = self._coordinator._run(flows.give_up(core, plan, claimed, tries, error, limit))
        self._tell_askers(claimed, [handled])

    def _gather(self, claimed: Claimed) -> bool:
        """Whether to go on with this group: another message has come, which may be begun."""
        core, plan, count = self._coordinator._core, self._plan, len(self._done)
        if plan.record_of(self._key) not in core.actors.known:
            return False  # it would have to be read
        if count >= claimed.record.begun or now() > self._since + GROUP_S or self._over.is_set():
            return False
        self._wake.clear()
        self._coordinator._run(flows.refresh(core, plan, claimed))
        if claimed.record.waiting > count:
            return True
        wait_event(self._wake, GATHER_S)
        self._coordinator._run(flows.refresh(core, plan, claimed))
        return claimed.record.waiting > count

    def _idle(self, claimed: Claimed, lease: Lease) -> bool:
        """Whether to go on: there was no message, and one has come."""
        core, plan, worker, run = self._coordinator._core, self._plan, self._worker, self._coordinator._run
        if self._left == TURN_COUNT or not self._goes_on(lease):
            return False
        self._wake.clear()
        worker.idle = True
        try:
            run(flows.refresh(core, plan, claimed))
            pause = LOOK_S if claimed.foreign else IDLE_S
            while not (claimed.record.waiting or pause > IDLE_S or self._over.is_set() or self._is_wanted()):
                wait_event(self._wake, pause)
                run(flows.refresh(core, plan, claimed, claimed.foreign and not self._wake.is_set()))
                pause *= 2
        finally:
            worker.idle = False
        return claimed.record.waiting > 0

    def _flush(self, claimed: Claimed, limit: int, within: float | None = None) -> None:
        """Acknowledge what is done, and begin with others."""
        core, plan = self._coordinator._core, self._plan
        handled, state = self._done, self._state or claimed.record.state
        self._coordinator._run(flows.acknowledge(core, plan, claimed, state, handled, limit, within))
        self._left -= len(handled)
        self._done, self._state, self._offset, self._since, self._busy = [], "", 0, 0.0, 0.0
        self._tell_askers(claimed, handled)

    def _next_limit(self, lease: Lease) -> int:
        """How many messages to begin with."""
        if not self._goes_on(lease):
            return 0
        quick = self._busy <= QUICK_S * len(self._done) and self._plan.tries > 1 and not self._worker.tells_itself
        self._limit = min(2 * self._limit, GROUP_COUNT) if quick and self._done else 1 if self._done else self._limit
        return max(1, min(self._limit, self._left - len(self._done)))

    def _tell_askers(self, claimed: Claimed, handled: list[Handled]) -> None:
        """Whoever waits for an answer in this coordinator need not look for it."""
        answer, full = self._coordinator._core.actors.answer, self._plan.record_of(self._key)
        for each in handled:
            if each[1:] != (None, None) and answer(full, *each) and each.answer is not None:
                claimed.fetched.append(each.id)

    def _goes_on(self, lease: Lease) -> bool:
        """Whether to begin with another message."""
        return self._left > len(self._done) and not self._over.is_set() and lease.state is not State.LOST

    def _take_back(self, claimed: Claimed) -> None:
        """What is done is done; a try that was begun is none: its worker was stopped."""
        try:
            self._flush(claimed, 0, 0.0)
        except HoldfastError:
            pass  # it has another worker by now, or will be found with one try more
