"""The flows of actors, one request of somebody at a time, in an order that chance decides: with crashes between any
two requests, lost replies, and workers that have no lock at all, so that only the fence keeps them apart.

1. What was told is handled: its effect on the state is there once.
2. What was told to nobody's knowledge (the teller died, or does not know) has its effect once at most.
3. A worker whose acknowledgement was taken finds its own effect there: no zombie's.
4. Nobody is forgotten: in the end the index leads to every inbox that is not empty.

And with a bug planted, one of the first schedules shows it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast._core.actor_exchange import ActorExchange
from holdfast._core.coordinator_core import CoordinatorCore
from holdfast._core.flow import Flow
from holdfast.recipes import actor_inbox, actor_store, actor_worker
from holdfast.recipes.actor_options import plan_actors
from holdfast.recipes.actor_record import ActorRecord, Handled, InboxMessage
from tests.support.interleavings import Schedule, Somebody

PLAN = plan_actors("lists", ttl=1.0, concurrency=1, capacity=100, tries=100, backoff=0.0)
SEEDS_COUNT = 400
STEPS_COUNT = 5000


class World(Schedule):
    """Tellers and workers of one actor."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.tokens = 0
        self.known: list[dict[str, object]] = [{}, {}]
        self.told: dict[str, str] = {}
        """How each tell has ended."""
        self.acknowledged: list[list[Any]] = []
        """The effects that a worker takes for its own."""

    @property
    def core(self) -> CoordinatorCore:
        """Of one of two coordinators, or of another each time. Nobody waits for somebody else's turn, and what one of
        them has read or written is remembered by all of its coordinator, also by those who died."""
        actors = ActorExchange(known=self.chance.choice([*self.known, {}]))
        return cast(CoordinatorCore, SimpleNamespace(backend=self.backend, observer=None, actors=actors))

    def tell(self, number: int) -> None:
        name = f"m{number}"
        message = InboxMessage(name, json.dumps(name))
        self.start(name, actor_inbox.tell(self.core, PLAN, "k", message, None))

    def work(self) -> None:
        self.tokens += 1
        self.start("worker", self._cycle(self.tokens))

    def _cycle(self, token: int) -> Flow[None]:
        page = yield from actor_worker.ready(self.core, PLAN, "")
        for found in page:
            if not actor_worker.is_ready(found):
                continue
            claimed = yield from actor_worker.claim(self.core, PLAN, "k", found.version, token, f"w{token}")
            yield from self._handle(claimed, token)
            yield from actor_worker.let_go(self.core, PLAN, claimed)

    def _handle(self, claimed: actor_worker.Claimed, token: int) -> Flow[None]:
        """In groups of any size, within what may be begun."""
        while True:
            record, limit = claimed.record, self.chance.randrange(4)
            count = min(record.waiting, record.begun)
            if count:
                effects, offset = list[list[Any]](), 0
                for _ in range(self.chance.randint(1, count)):
                    message, offset = record.message_at(offset)
                    effects.append([json.loads(message.body), token])
                text = json.dumps([*(json.loads(record.state) or []), *effects])
                handled = [Handled(name) for name, _ in effects]
                yield from actor_worker.acknowledge(self.core, PLAN, claimed, text, handled, limit)
                self.acknowledged += effects
            elif record.waiting:
                yield from actor_worker.acknowledge(self.core, PLAN, claimed, record.state, (), limit + 1)
            elif self.chance.random() < 0.5:
                yield from actor_worker.refresh(self.core, PLAN, claimed)
            else:
                return

    def ended(self, who: Somebody) -> None:
        assert who.ended in ("done", "FenceRejected", "OutcomeUnknown", "BackendUnavailable"), who.ended
        if who.name != "worker":
            self.told[who.name] = who.ended

    def between(self) -> None:
        if self.chance.random() < 0.1 and self.tokens < 6:
            self.work()

    def run(self) -> None:
        """Until everybody has ended, or died; new workers come by meanwhile, and go on afterwards."""
        for number in range(3):
            self.tell(number)
        self.work()
        self.storm(STEPS_COUNT, dies=0.03, lose=0.05)
        for _ in range(3):
            self.work()
            self.calm()

    def check(self) -> None:
        stored = self.store.records.get("actor:lists:k")
        record = ActorRecord() if stored is None else ActorRecord.decode(cast(Any, stored))
        assert record.waiting == 0, "somebody was forgotten"
        effects = json.loads(record.state) or []
        state = [name for name, _ in effects]
        assert len(state) == len(set(state)), "an effect was doubled"
        assert [each for each in self.acknowledged if each not in effects] == [], "a zombie was believed"
        assert {name for name, how in self.told.items() if how == "done"} <= set(state), "an effect was lost"


@pytest.mark.parametrize("batch", range(4))
def test_every_effect_is_there_once_in_any_order(batch: int) -> None:
    for seed in range(batch * SEEDS_COUNT, (batch + 1) * SEEDS_COUNT):
        world = World(seed)
        world.run()
        world.check()


def _unlist_whatever_it_is(patch: pytest.MonkeyPatch) -> None:
    def unlist(records: Any, key: str, version: int) -> Flow[None]:
        found = yield from records.read_record(key)
        if found is not None:
            yield from records.swap_record(key, found.version, b"0", "", 0.0, 1.0)

    patch.setattr(actor_worker, "unlist", unlist)


def _an_index_that_is_there_is_good_enough(patch: pytest.MonkeyPatch) -> None:
    def listing(records: Any, key: str, owner: str) -> Flow[None]:
        found = yield from records.read_record(key)
        if found is None or found.data != b"1":
            yield from records.swap_record(key, 0 if found is None else found.version, b"1", owner, 0.0, 9.0)

    patch.setattr(actor_inbox, "_list", listing)


def _an_empty_actor_is_not_claimed(patch: pytest.MonkeyPatch) -> None:
    real = actor_worker._change

    def change(core: Any, plan: Any, claimed: Any, *rest: Any, **options: Any) -> Flow[None]:
        if claimed.record.inbox:
            yield from real(core, plan, claimed, *rest, **options)

    patch.setattr(actor_worker, "_change", change)


def _listed_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ActorRecord, "resting", lambda self: self._replace(begun=0))


def _the_mark_is_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(actor_worker, "_check_mark", lambda *given: None)


def _a_lost_acknowledgement_is_written_again(patch: pytest.MonkeyPatch) -> None:
    def acknowledge(
        core: Any, plan: Any, claimed: Any, state: str, handled: Any, limit: int, within: float | None = None
    ) -> Flow[None]:
        def change(found: ActorRecord) -> ActorRecord:
            return found.without_first(state, handled[: found.waiting]).beginning(limit)

        return actor_worker._change(core, plan, claimed, change, lambda found: False, 0.0)

    patch.setattr(actor_worker, "acknowledge", acknowledge)


def _ids_are_not_remembered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ActorRecord, "knows", lambda self, message_id: False)


def _what_is_remembered_is_not_corrected(patch: pytest.MonkeyPatch) -> None:
    def remember(core: Any, key: str, record: Any, found: ActorRecord) -> actor_store.SeenActor:
        old = core.actors.known.get(key)
        seen = actor_store.SeenActor(0 if record is None else record.version, found if old is None else old.record)
        core.actors.known[key] = actor_store.SeenActor(seen.version, found)
        return seen

    patch.setattr(actor_store, "_remember", remember)


@pytest.mark.parametrize(
    "plant",
    [
        _what_is_remembered_is_not_corrected,
        _unlist_whatever_it_is,
        _an_index_that_is_there_is_good_enough,
        _an_empty_actor_is_not_claimed,
        _listed_for_ever,
        _the_mark_is_not_compared,
        _ids_are_not_remembered,
        _a_lost_acknowledgement_is_written_again,
    ],
    ids=lambda plant: plant.__name__,
)
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for seed in range(10 * SEEDS_COUNT):
        world = World(seed)
        world.run()
        try:
            world.check()
        except AssertionError:
            return
    raise AssertionError("no schedule has shown it")
