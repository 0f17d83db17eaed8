# Generated from src/holdfast/aio/actor_system.py by `make generate`: change that file, not this one.
"""Actors for threads: tell and ask them, run workers that handle their messages, and look after them."""

from __future__ import annotations

import json
import os
import random
import threading
from functools import partial
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Any, cast

from .._core.actor_exchange import ActiveWorker, Asker
from .._core.pickling import unpicklable
from ..clock import now
from ..errors import MessageFailed, Misconfigured, NoAnswer
from ..model import check_seconds
from ..recipes import actor_inbox, actor_survey
from ..recipes.actor_options import MAX_MESSAGE_BYTES, ActorPlan, check_message_id
from ..recipes.actor_record import ActorView, DeadLetter, InboxMessage, encode_value
from ..recipes.decorator import check_blocking
from ..recipes.election import check_stop
from .activation import Handler
from .actor_loop import ActorLoop
from .base_partitions import Background, wait_event

if TYPE_CHECKING:
    from .coordinator import Coordinator

TOLD_S = 1.0
"""How long a worker takes at most to tell an answer that it has at hand."""


class ActorSystem:
    """Actors by key: each handles its messages one at a time, in all processes, in the order in which they were told.

    >>> import holdfast
    >>> def account(actor: holdfast.Actor, amount: int) -> int:
    ...     actor.state = (actor.state or 0) + amount
    ...     return actor.state
    >>> with holdfast.connect("memory://actor-threads") as locks:
    ...     with locks.actors("accounts", account) as accounts:
    ...         told = accounts.tell("alice", 100)
    ...         accounts.ask("alice", -30)
    70
    """

    __reduce__ = unpicklable("make it there, with the same name")

    def __init__(self, coordinator: Coordinator, plan: ActorPlan, handler: Handler | None) -> None:
        self._coordinator = coordinator
        self._plan = plan
        if handler is not None:
            check_blocking(handler, repr(self), "call")
        self._loop = None if handler is None else ActorLoop(coordinator, plan, handler, repr(self))
        self._background: Background | None = None

    @property
    def name(self) -> str:
        """What its keys belong to."""
        return self._plan.name

    # Messages

    def tell(
        self, key: str, message: object, *, message_id: str | None = None, timeout: float | EllipsisType | None = ...
    ) -> str:
        """Put a message, what JSON can hold, into the inbox of an actor. Answers with its id.

        With a `message_id` of your own a message that is told again is the same message: it is handled once. If the
        inbox is full, it waits for `timeout` seconds (None: as long as it takes) and then raises `InboxFull`; at once
        if the handler tells its own actor.
        """
        sent, limit = self._message(key, message, message_id, timeout, False)
        core = self._coordinator._core
        if (worker := self._own_worker(key)) is not None:
            worker.tells_itself, limit = True, 0.0  # nobody else makes room
        self._coordinator._run(actor_inbox.tell(core, self._plan, key, sent, limit))
        core.actors.wake(self.name, self._plan.record_of(key), False)
        return sent.id

    def ask(
        self, key: str, message: object, *, message_id: str | None = None, timeout: float | EllipsisType | None = ...
    ) -> Any:
        """Tell, and wait for what the handler returns.

        Raises `NoAnswer` once `timeout` has passed: the message stays, and is handled all the same. Raises
        `MessageFailed` if the handler has failed at it for good. A handler cannot ask its own actor: `Misconfigured`.
        """
        sent, limit = self._message(key, message, message_id, timeout, True)
        coordinator, core, plan = self._coordinator, self._coordinator._core, self._plan
        if self._own_worker(key) is not None:
            raise Misconfigured(
                f"the handler of {key!r} ({self.name!r}) asks its own actor, whose next message waits until this is "
                "handled: it would wait for itself; tell it instead"
            )
        began, looks, place = now(), 0, (plan.record_of(key), sent.id)
        asker = core.actors.askers.setdefault(place, Asker(threading.Event()))
        event = cast(threading.Event, asker.event)
        try:
            coordinator._run(actor_inbox.tell(core, plan, key, sent, limit))
            core.actors.wake(self.name, plan.record_of(key), True)
            while True:
                if looks or message_id is None:  # a worker of this coordinator tells us, or we look
                    wait_event(event, actor_inbox.pause_s(looks, limit, now() - began, random.random()))
                if asker.is_told():
                    break
                try:
                    answer = coordinator._run(actor_inbox.look_for_answer(core, plan, key, sent.id))
                except NoAnswer:
                    if not asker.is_told():
                        raise
                    break
                if answer is not None:
                    return json.loads(answer)
                waited = now() - began
                if limit is not None and waited >= limit:
                    if core.actors.askers.pop(place, None) is None:  # a worker is about to tell us
                        wait_event(event, TOLD_S)
                    if not asker.is_told():
                        raise NoAnswer(self.name, key, sent.id, waited)
                    break
                looks += 1
        finally:
            if core.actors.askers.get(place) is asker:
                core.actors.askers.pop(place, None)
        if asker.answer is None:
            raise MessageFailed(self.name, key, sent.id, asker.error or "")
        return json.loads(asker.answer)

    def _own_worker(self, key: str) -> ActiveWorker | None:
        """The worker of this actor, if it is its handler that calls this."""
        worker = self._coordinator._core.actors.workers.get(self._plan.record_of(key))
        return worker if worker is not None and worker.who == self._coordinator._actors.current(False) else None

    def _message(
        self, key: str, message: object, message_id: str | None, timeout: float | EllipsisType | None, asked: bool
    ) -> tuple[InboxMessage, float | None]:
        self._plan.check_key(key)
        limit = self._coordinator._defaults["timeout"] if isinstance(timeout, EllipsisType) else timeout
        if limit is not None:
            check_seconds("timeout", limit, key)
        body = encode_value(message, MAX_MESSAGE_BYTES, f"a message to {key!r} ({self.name!r})")
        chosen = os.urandom(8).hex() if message_id is None else check_message_id(message_id)
        return InboxMessage(chosen, body, asked), limit

    # Workers

    def run(self, stop: threading.Event | None = None) -> None:
        """Handle messages until `stop` is set; then end the ones under way."""
        check_stop(stop, f"the actors {self.name!r}", awaits=False)
        self._begun().serve(stop)

    def __enter__(self) -> ActorSystem:
        self._background = Background(partial(self._begun().serve, None), f"holdfast-actors-{self.name}")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        background, self._background = self._background, None
        if self._loop is not None:
            self._loop.end()
        if background is not None:
            background.join()

    def _begun(self) -> ActorLoop:
        if self._loop is None:
            raise Misconfigured(f"{self!r} has no handler: it can tell and ask, and not run; give it a handler")
        self._loop.begin()
        return self._loop

    # Looking after them

    def look(self, key: str) -> ActorView | None:
        """An actor as it is now; None if there is none."""
        return self._coordinator._run(actor_survey.look(self._coordinator._core, self._plan, key))

    def views(self, after: str = "", limit: int = 100) -> list[ActorView]:
        """The actors in the order of their keys: the first ones behind the key `after`."""
        flow = actor_survey.look_at_all(self._coordinator._core, self._plan, after, limit)
        return self._coordinator._run(flow)

    def dead_letters(self, key: str | None = None, limit: int = 100) -> list[DeadLetter]:
        """Messages of an actor (None: of all of them) that could not be handled, each with its error."""
        flow = actor_survey.dead_letters(self._coordinator._core, self._plan, key, limit)
        return self._coordinator._run(flow)

    def retry(self, key: str, message_id: str) -> bool:
        """Tell a dead letter again, at the end of the inbox. False if there is none."""
        limit = self._coordinator._defaults["timeout"]
        flow = actor_survey.retry(self._coordinator._core, self._plan, key, message_id, limit)
        found = self._coordinator._run(flow)
        self._coordinator._core.actors.wake(self.name, self._plan.record_of(key), False)
        return found

    def drop(self, key: str, message_id: str) -> bool:
        """Remove a dead letter. False if there is none."""
        return self._coordinator._run(actor_survey.drop(self._coordinator._core, self._plan, key, message_id))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"
