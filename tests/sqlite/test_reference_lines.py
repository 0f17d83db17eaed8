"""The embedded engine answers every sequence of requests as the reference does, statement by statement.

Its quick verbs are SQL and its slow ones load a line and save what changed; the reference is `_core.line` in memory.
Both get the same requests at the same moments; replies, promotions and the survey after each step must be equal.

Tokens are compared by their order: a try that came to nothing may use up a number in one engine and not in the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast.backends.execute import Moment, push_to
from holdfast.backends.memory.store import MemoryStore
from holdfast.backends.queue_backend import Evict, Recover, Renew, Survey, Take, Taken
from holdfast.backends.sqlite import file as sqlite_file
from holdfast.backends.sqlite import store as sqlite_store
from holdfast.backends.sqlite.operations import StoreOperations
from holdfast.backends.sqlite.queue import FIRST_COUNT
from holdfast.backends.sqlite.store import SQLiteStore
from holdfast.model import Claim, LockView, Predecessor
from tests.relational.reference import exact
from tests.unit.effort import seeds
from tests.unit.requests import ITS_OWN, OLDEST, TICK, Crowd, Step, shrunk

DAY = 24 * 3600 * 1_000_000


class Numbers:
    """Tokens of one engine, as the numbers of their first appearance. An owner stands for its one name."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []
        self._names: dict[str, str] = {}

    def of(self, owner: str, token: int | None) -> int | None:
        if not token:
            return token
        if (owner, token) not in self.seen:
            self.seen.append((owner, token))
        return self.seen.index((owner, token)) + 1

    def named(self, claim: Claim) -> Claim:
        tokens = [token for owner, token in self.seen if owner == claim.owner] or [7]
        return replace(claim, token=tokens[0 if claim.token == OLDEST else -1])

    def name(self, request: Any) -> Any:
        """Fill in tokens: an eviction names one of the last, a renewal its owner's own."""
        match request:
            case Evict(name=name, token=back):
                if name != ITS_OWN or len(self.seen) < -back:
                    return Evict("a" if name == ITS_OWN else name, 7)
                owner, token = self.seen[back]
                return Evict(self._names[owner], token)
            case Renew(claims=claims):
                return Renew([self.named(claim) for claim in claims])
            case Recover(claim=claim):
                return Recover(self.named(claim))
        return request

    def in_reply(self, request: Any, reply: Any) -> Any:
        match request:
            case Take(claims=claims):
                return [self._taken(claim, taken) for claim, taken in zip(claims, reply, strict=True)]
            case Survey(prefix=prefix, exact=exact, contended=contended):  # an engine may answer more than was asked
                wanted = [view for view in reply if not exact or view.name == prefix]
                return [self._view(view) for view in wanted if not contended or view.waiters]
        return reply

    def _taken(self, claim: Claim, taken: Taken) -> Taken:
        self._names[claim.owner] = claim.spec.name
        if taken.look_again:
            assert taken.mark >= max((token for owner, token in self.seen if owner == claim.owner), default=0)
        after = self.after(taken.predecessor)
        return replace(taken, token=self.of(claim.owner, taken.token) or 0, mark=0, predecessor=after)

    def after(self, one: Predecessor | None) -> Predecessor | None:
        return one and replace(one, token=self.of(one.owner, one.token) or 0)

    def _view(self, view: LockView) -> LockView:
        holders = tuple(replace(c, token=self.of(c.owner, c.token)) for c in view.holders)
        return replace(view, holders=holders, unrecovered=self.after(view.unrecovered))


class Both:
    """The two engines side by side, at the same moments; SQLite through two connections to one file.

    It stands in for the postman too: `dead` are the owners that nobody is at home for.
    """

    def __init__(self, path: Path) -> None:
        self.now = 0
        self.clock = 0
        self._stores = [SQLiteStore(path, "ns", "host") for _ in range(2)]
        self._examples = itertools.count(1)
        self.difference = ""

    def begin(self, dead: frozenset[str]) -> None:
        """A new example, in a namespace of its own: opening a file for each would take most of the time."""
        self.now, self.clock = 1_000 * 64 * TICK, 100 * DAY
        self._dead = dead
        self._numbers = (Numbers(), Numbers())
        self._reference = MemoryStore()
        self._offices = [StoreOperations(store) for store in self._stores]
        example = next(self._examples)
        for office in self._offices:
            office.store._prefix = f"ns{example}/"
            assert office._postman is not None
            office._postman.close()
            office._postman = self  # type: ignore[assignment]

    def send(self, address: str, owner: str, token: int, after: Predecessor | None) -> bool:
        self._sent.append((owner, token, after))
        return owner not in self._dead

    def close(self) -> None:
        for store in self._stores:
            store.close()

    def _ask_sqlite(self, door: int, request: Any) -> Any:
        self._sent: list[tuple[str, int, Predecessor | None]] = []
        office = self._offices[door]
        reply = office.quick(request)
        if reply is None:
            reply = office.take(request, "box") if isinstance(request, Take) else office.whole(request)
        return reply, self._sent

    def _ask_reference(self, request: Any) -> Any:
        at = Moment(self.now, self.clock, "box", "host", self._stores[0]._pid)
        reply, promoted = self._reference.carry_out(request, at)
        sent = []
        while promoted:
            name, place = promoted.pop()
            sent.append((place.owner, place.token, push_to(place).predecessor))
            if place.owner in self._dead:
                line = self._reference.load(name)
                _, heirs = line.release(place.owner, at.now, at.clock, told=False)
                self._reference.save(name, line)
                promoted += [(name, heir) for heir in heirs]
        return reply, sent

    def _answers(self, door: int, request: Any) -> Iterator[Any]:
        specs: tuple[Callable[[Any], Any], ...] = (partial(self._ask_sqlite, door), self._ask_reference)
        for numbers, spec in zip(self._numbers, specs, strict=True):
            reply, sent = spec(numbers.name(request))
            said = numbers.in_reply(request, reply)
            sent.sort(key=lambda one: one[:2])
            told = [(owner, numbers.of(owner, token), numbers.after(after)) for owner, token, after in sent]
            yield said, told

    def compare(self, step: Step) -> list[LockView]:
        self.now += step.ticks * TICK
        self.clock += step.ticks * TICK + 1 + step.days * DAY
        theirs, ours = self._answers(step.door, step.request)
        if isinstance(step.request, Renew):  # why not: known for as long as what is over was not swept away
            for said, expected in zip(theirs[0], ours[0], strict=True):
                assert said == expected or ("held" not in (said, expected) and "refused" in (said, expected))
        else:
            assert (_remembered(exact(theirs[0], ours[0]), ours[0]), theirs[1]) == ours, step.request
        theirs, ours = self._answers(1 - step.door, Survey(""))
        assert theirs == ours, f"the survey after {step.request}"
        picture: list[LockView] = ours[0]
        return picture


def _remembered(theirs: Any, ours: Any) -> Any:
    """After a day an engine may have forgotten how a hold ended; unless it left a name unrecovered (the survey)."""
    if not isinstance(theirs, list) or not all(isinstance(taken, Taken) for taken in theirs):
        return theirs
    return [
        replace(one, predecessor=expected.predecessor) if one.predecessor is None else one
        for one, expected in zip(theirs, ours, strict=True)
    ]


@pytest.fixture(scope="module", params=[FIRST_COUNT, 1], ids=["", "little of a line is loaded"])
def both(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Both]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_store, "FIRST_COUNT", request.param)
        patch.setattr(sqlite_store, "FURTHER_RATIO", 2)
        patch.setattr(sqlite_file, "TIDY_EVERY", 3)
        engines = Both(tmp_path_factory.mktemp("lines") / "locks.db")
        for module in (sqlite_file, sqlite_store):
            patch.setattr(module, "now", lambda: engines.now / 1e6)
            patch.setattr(module, "calendar_us", lambda: engines.clock)
        yield engines
        engines.close()


@pytest.mark.parametrize("gone", [0, 2], ids=["all alive", "two are gone"])
@pytest.mark.parametrize("mixed", [False, True], ids=["mutexes", "every kind"])
def test_every_sequence_has_the_same_replies(both: Both, mixed: bool, gone: int) -> None:
    for seed in seeds(250):
        crowd, steps, picture = Crowd(seed, mixed, robust=True), list[Step](), list[LockView]()
        dead = frozenset(f"o{number}" for number in range(gone))
        both.begin(dead)
        for _ in range(60):
            steps.append(crowd.step(picture))
            try:
                picture = both.compare(steps[-1])
            except AssertionError:
                story = shrunk(steps, partial(differs, both, dead))
                pytest.fail(f"seed {seed}, {gone} gone:\n" + "\n".join(map(str, story)) + f"\n{both.difference}")


def differs(both: Both, dead: frozenset[str], steps: list[Step]) -> bool:
    both.begin(dead)
    try:
        for step in steps:
            both.compare(step)
    except AssertionError as error:
        both.difference = str(error)
        return True
    return False
