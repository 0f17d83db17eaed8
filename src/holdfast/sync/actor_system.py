# Generated from src/holdfast/aio/actor_system.py by `make generate`: change that file, not this one.
"""Actors for threads: tell and ask them, run workers that handle their messages, and look after them.

1. `run` reads the index of actors with messages, page by page in a circle, and starts an `Activation` for each, up to
   `concurrency` at a time. Each page is shuffled, so that the workers of several processes do not meet.
2. If there is nothing to do it pauses, longer and longer; a message told by the same coordinator wakes it.
3. An actor that another worker has, or whose activation has failed, is left alone for a while.
4. To stop: no message is begun any more, and those under way are handled to their end.
"""

from __future__ import annotations

import json
import os
import random
import threading
from collections import deque
from functools import partial
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Any

from .._core.backoff import ceiling
from .._core.pickling import unpicklable
from ..clock import now
from ..errors import BackendUnavailable, LeaseLost, Misconfigured, NoAnswer
from ..model import check_seconds
from ..observe.log_exception import log_exception
from ..recipes import actor_inbox, actor_survey
from ..recipes import actor_worker as flows
from ..recipes.actor_options import MAX_MESSAGE_BYTES, ActorPlan, check_message_id
from ..recipes.actor_record import ActorView, DeadLetter, InboxMessage, encode_value
from ..recipes.decorator import check_blocking
from ..recipes.election import check_stop
from .activation import Activation, Handler
from .base_partitions import Background, finish, wait_event, wait_first

if TYPE_CHECKING:
    from .coordinator import Coordinator

IDLE_S, IDLE_CAP_S = 0.01, 0.25
"""The first and the longest pause between two looks at the index."""
AWAY_S, AWAY_CAP_S, FAILED_CAP_S = 0.02, 0.5, 10.0
"""The first and the longest time for which an actor is left alone that another worker has; longer after an error."""


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
        self._handler = handler
        if handler is not None:
            check_blocking(handler, repr(self), "call")
        self._wake = threading.Event()
        self._over = threading.Event()
        """The workers are to stop."""
        self._background: Background | None = None
        self._pid = 0
        """The process in which its workers run."""
        self._active: dict[str, Background] = {}
        self._ended: deque[tuple[str, float]] = deque()
        """Actors whose activation has ended, and for how long they are left alone at most; 0 if all went well."""
        self._away: dict[str, tuple[int, float]] = {}
        """Actors to be left alone: how often in a row, and until when."""

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
        inbox is full, it waits for `timeout` seconds (None: as long as it takes) and then raises `InboxFull`.
        """
        sent, limit = self._message(key, message, message_id, timeout, False)
        self._coordinator._run(actor_inbox.tell(self._coordinator._core, self._plan, key, sent, limit))
        self._wake_workers()
        return sent.id

    def ask(
        self, key: str, message: object, *, message_id: str | None = None, timeout: float | EllipsisType | None = ...
    ) -> Any:
        """Tell, and wait for what the handler returns.

        Raises `NoAnswer` once `timeout` has passed: the message stays, and is handled all the same. Raises
        `MessageFailed` if the handler has failed at it for good.
        """
        sent, limit = self._message(key, message, message_id, timeout, True)
        coordinator, core, plan = self._coordinator, self._coordinator._core, self._plan
        began, looks = now(), 0
        handled = core.answers[sent.id] = threading.Event()
        try:
            coordinator._run(actor_inbox.tell(core, plan, key, sent, limit))
            self._wake_workers()
            while True:
                answer = coordinator._run(actor_inbox.look_for_answer(core, plan, key, sent.id))
                if answer is not None:
                    return json.loads(answer)
                waited = now() - began
                if limit is not None and waited >= limit:
                    raise NoAnswer(self.name, key, sent.id, waited)
                wait_event(handled, actor_inbox.pause_s(looks, limit, waited, random.random()))
                handled.clear()
                looks += 1
        finally:
            core.answers.pop(sent.id, None)

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

    def _wake_workers(self) -> None:
        for event in list(self._coordinator._core.wakes.get(self.name, ())):
            event.set()

    # Workers

    def run(self, stop: threading.Event | None = None) -> None:
        """Handle messages until `stop` is set; then end the ones under way."""
        check_stop(stop, f"the actors {self.name!r}", awaits=False)
        self._begin()
        self._serve(stop)

    def __enter__(self) -> ActorSystem:
        self._begin()
        self._background = Background(partial(self._serve, None), f"holdfast-actors-{self.name}")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        background, self._background = self._background, None
        self._over.set()
        self._wake.set()
        if background is not None:
            background.join()

    def _begin(self) -> None:
        if self._handler is None:
            raise Misconfigured(f"{self!r} has no handler: it can tell and ask, and not run; give it a handler")
        with self._coordinator._mutex:
            if self._pid == os.getpid():
                raise Misconfigured(
                    f"{self!r} runs already; make another one with locks.actors(), or more concurrency="
                )
            self._pid = os.getpid()
        self._active, self._ended, self._away = {}, deque(), {}
        self._over.clear()

    def _serve(self, stop: threading.Event | None) -> None:
        core = self._coordinator._core
        wakes = core.wakes.setdefault(self.name, set())
        wakes.add(self._wake)
        try:
            self._look_for_work(stop)
        except Misconfigured:
            if not core.admission.closed:
                raise
        except Exception:
            log_exception("the workers of %r have ended", self)
            raise
        except BaseException:
            for each in self._active.values():
                each.abandon()
            raise
        finally:
            self._over.set()
            wakes.discard(self._wake)
            finish(self._end)

    def _end(self) -> None:
        for each in list(self._active.values()):
            each.wait()
        self._note_ends()
        self._pid = 0

    def _look_for_work(self, stop: threading.Event | None) -> None:
        core, plan, after, idle, failures = self._coordinator._core, self._plan, "", 0, 0
        while not (self._over.is_set() or (stop is not None and stop.is_set())):
            self._wake.clear()
            self._note_ends()
            page, begun = [], 0
            if len(self._active) < plan.concurrency:
                try:
                    page = self._coordinator._run(flows.ready(core, plan, after))
                    failures = 0
                except BackendUnavailable:
                    failures += 1
                begun = self._begin_each([(each.key, each.version) for each in page if flows.is_ready(each)])
            after = page[-1].key[len(plan.ready_prefix) :] if len(page) == flows.PAGE_COUNT else ""
            idle = 0 if begun else idle + 1
            if after and len(self._active) < plan.concurrency:
                continue
            pause = ceiling(max(idle, failures), IDLE_S, 4 * IDLE_CAP_S if failures else IDLE_CAP_S)
            wait_first(stop, self._wake, random.uniform(pause / 2, pause))

    def _begin_each(self, ready: list[tuple[str, int]]) -> int:
        """Begin with those that can be begun with; answers how many."""
        plan, begun = self._plan, 0
        random.shuffle(ready)
        for full, version in ready:
            key = full[len(plan.ready_prefix) :]
            if len(self._active) >= plan.concurrency:
                break
            if key in self._active or now() < self._away.get(key, (0, 0.0))[1]:
                continue
            self._active[key] = Background(partial(self._activate, key, version), f"holdfast-actor-{key}")
            begun += 1
        return begun

    def _activate(self, key: str, version: int) -> None:
        assert self._handler is not None
        away = AWAY_CAP_S
        try:
            if Activation(self._coordinator, self._plan, self._handler, key, version, self._over).run():
                away = 0.0
        except (BackendUnavailable, LeaseLost):
            pass  # somebody goes on with it
        except Exception:  # noqa: BLE001  one actor's trouble is not another's
            away = FAILED_CAP_S
            if not self._coordinator._core.admission.closed:
                log_exception("%r of %r: its messages wait", key, self)
        finally:
            self._ended.append((key, away))
            self._wake.set()

    def _note_ends(self) -> None:
        while self._ended:
            key, away = self._ended.popleft()
            self._active.pop(key, None)
            count, _ = self._away.pop(key, (0, 0.0))
            if away:
                self._away[key] = (count + 1, now() + ceiling(count, AWAY_S, away))
        if len(self._away) > 10 * flows.PAGE_COUNT:
            self._away = {key: each for key, each in self._away.items() if each[1] > now()}

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
        self._wake_workers()
        return found

    def drop(self, key: str, message_id: str) -> bool:
        """Remove a dead letter. False if there is none."""
        return self._coordinator._run(actor_survey.drop(self._coordinator._core, self._plan, key, message_id))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"
