"""The line keeps its rules, whatever is asked of it: compared with a toy, and held to what everybody relies on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast._core.line import GHOST, Ended, Line, Place
from holdfast.backends.execute import Moment, place_of, us
from holdfast.backends.memory.store import MemoryStore
from holdfast.backends.queue_backend import Evict, Release, Renew, Survey, Take
from holdfast.model import Claim, LockSpec, LockView
from tests.unit.effort import seeds
from tests.unit.requests import ITS_OWN, OLDEST, TICK, Crowd
from tests.unit.toy import Toy, entry

DAY = 24 * 3600 * 1_000_000


class Game:
    """A store and a toy for each name, asked the same at the same moments."""

    def __init__(self) -> None:
        self.now, self.clock = 1_000 * 64 * TICK, 100 * DAY
        self.store = MemoryStore()
        self.toys: dict[str, Toy] = {}
        self.tokens: dict[str, list[int]] = {}
        self.grants: list[tuple[str, str, int]] = []

    @property
    def at(self) -> Moment:
        return Moment(self.now, self.clock)

    def ask(self, request: Any) -> Any:
        return self.store.carry_out(request, self.at)[0]

    def picture(self) -> list[LockView]:
        views: list[LockView] = self.ask(Survey(""))
        return views

    def note(self) -> None:
        """Every grant, in the order in which it is seen."""
        for view in self.picture():
            for claim in view.holders:
                if claim.token and (view.name, claim.owner, claim.token) not in self.grants:
                    self.grants.append((view.name, claim.owner, claim.token))

    def play(self, request: Any) -> None:
        toy = self.toys.setdefault(name_of(request), Toy())
        match request:
            case Take(claims=[claim], queue=queue):
                place = entry(place_of(claim, self.at))
                expected = toy.take(place, claim.spec.capacity, self.now, self.clock, queue)
                [taken] = self.ask(request)
                assert (f"it is {taken.capacity}" if taken.capacity else taken.token) == expected
            case Renew(claims=[claim]):
                said = self.ask(request)
                assert (said == ["held"]) == toy.renew(claim.owner, claim.token, self.now)
            case Release(claim=claim, linger=linger):
                assert self.ask(request) == toy.release(claim.owner, self.now, self.clock, us(linger))
            case Evict(token=token):
                assert self.ask(request) == toy.evict(token, self.now, self.clock)
        self.note()

    def compare(self) -> None:
        views = {view.name: view for view in self.picture()}
        for name, toy in self.toys.items():
            view = views.get(name)
            holders = [] if view is None else [(claim.owner, claim.token) for claim in view.holders]
            waiters = [] if view is None else [claim.owner for claim in view.waiters]
            assert (holders, waiters) == (toy.holders(self.now), toy.waiters(self.now))
            if view is not None:
                assert sum(claim.weight for claim in view.holders) <= view.capacity


def name_of(request: Any) -> str:
    match request:
        case Evict(name=name):
            return str(name)
        case Take(claims=[claim, *_]) | Renew(claims=[claim, *_]) | Release(claim=claim):
            return str(claim.spec.name)
    return ""


def named(request: Any, game: Game) -> Any:
    """The request with real tokens, and about one name."""
    match request:
        case Take(claims=claims, queue=queue):
            return Take((claims[0],), queue)
        case Renew(claims=[claim, *_]):
            mine = [token for _, owner, token in game.grants if owner == claim.owner] or [7]
            token = mine[0 if claim.token == OLDEST else -1]
            return Renew([type(claim)(claim.spec, claim.owner, claim.actor, token)])
        case Evict(name=name, token=back):
            real, _, token = game.grants[back] if len(game.grants) >= -back else ("a", "", 7)
            return Evict(real if name == ITS_OWN else name, token)
    return request


@pytest.mark.parametrize("mixed", [False, True], ids=["mutexes", "every kind"])
def test_it_does_what_the_toy_does(mixed: bool) -> None:
    for seed in seeds(300):
        crowd, game = Crowd(seed, mixed), Game()
        for number in range(50):
            step = crowd.step(game.picture())
            game.now += step.ticks * TICK
            game.clock += step.ticks * TICK + step.days * DAY
            try:
                game.play(named(step.request, game))
                game.compare()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, step {number}: {step.request}: {error}") from error


def test_tokens_grow_in_the_order_of_grants_whatever_the_calendar_does() -> None:
    for seed in seeds(200):
        crowd, game, last = Crowd(seed, mixed=True), Game(), dict[str, int]()
        for _ in range(60):
            step = crowd.step(game.picture())
            game.now += step.ticks * TICK
            game.clock += step.days * DAY * 3
            before = len(game.grants)
            game.play(named(step.request, game))
            for name, _, token in sorted(game.grants[before:], key=lambda grant: grant[2]):
                assert token > last.get(name, 0), f"seed {seed}"
                last[name] = token


def test_the_same_take_twice_is_one_claim() -> None:
    for seed in seeds(100):
        crowd, game = Crowd(seed, mixed=True), Game()
        for _ in range(40):
            request = named(crowd.step(game.picture()).request, game)
            first = game.ask(request)
            picture = game.picture()
            if isinstance(request, Take) and request.queue:
                again = game.ask(request)
                assert [taken.token for taken in again] == [taken.token for taken in first]
                assert [(v.name, len(v.holders), len(v.waiters)) for v in game.picture()] == [
                    (v.name, len(v.holders), len(v.waiters)) for v in picture
                ]
            game.note()


def test_a_line_that_everybody_has_left_is_empty() -> None:
    for seed in seeds(100):
        crowd, game = Crowd(seed, mixed=True), Game()
        for _ in range(40):
            game.ask(named(crowd.step(game.picture()).request, game))
            game.note()
        for claim in crowd._claims:
            game.ask(Release(claim, 0.0))
        game.now += 3600 * 1_000_000
        assert game.picture() == []
        for name, line in game.store.lines.items():
            line.sweep(game.now)
            assert line.places == [], f"{name} after seed {seed}"


def test_a_ghost_is_not_taken_for_its_owner() -> None:
    line = Line(capacity=1)
    game = Game()
    [claim] = [c for c in Crowd(1, False)._claims if c.owner == "o0"]
    line.take(place_of(claim, game.at), 1, game.now, 5, True)
    assert line.release("o0", game.now, 5, linger=us(1.0))[0]
    assert line.find("o0") is None
    assert [place.owner for place in line.places] == [GHOST + "o0"]
    assert line.renew("o0", game.now, 5) == "refused"
    assert line.release("o0", game.now, 5) == (False, [])


def place(owner: str, ttl: int = 10, delay: int = 0, robust: bool = False) -> Place:
    return Place(owner, 1, True, ttl, ttl, delay, 0, 0, robust=robust)


def seats(*places: Place) -> Line:
    """A line in which all of these hold, in this order; tokens begin with 1."""
    line = Line()
    for one in places:
        line.take(one, len(places) + 1, 0, 0, False)
    return line


def test_of_several_holds_that_have_ended_the_last_to_be_granted_is_told_whoever_finds_them() -> None:
    for find in (
        Line.sweep,
        lambda line, now: line.release("two", now, now),
        lambda line, now: line.evict(9, now, now),
    ):
        line = seats(place("one", robust=True), place("two"), place("three", ttl=99))
        find(line, 10)
        assert line.last == Ended(2, "two", "expired", robust=True)


def test_who_lets_go_after_another_has_expired_is_the_last() -> None:
    line = seats(place("one"), place("two", ttl=99))
    line.release("two", 10, 10)
    assert line.last == Ended(2, "two", "released")
    line = seats(place("one"), place("two", ttl=99))
    line.evict(2, 10, 10)
    assert line.last == Ended(2, "two", "evicted")


def test_a_hold_that_lingers_was_released_whatever_ends_it() -> None:
    line = seats(place("one", robust=True))
    line.release("one", 1, 1, linger=50)
    line.evict(1, 2, 2)
    assert line.last == Ended(1, "one", "released")


def test_a_grant_that_was_undone_leaves_no_note() -> None:
    """Of two names one is not free: the grant of the other is taken back, and nobody was told of it."""
    game = Game()
    first, second, third = (Claim(LockSpec(name), owner, "") for name, owner in (("a", "o1"), ("b", "o2"), ("a", "o3")))
    game.ask(Take((second,), False))
    [refused, _] = game.ask(Take((first, replace(second, owner="o4")), False))
    assert not refused.token
    [taken] = game.ask(Take((third,), False))
    assert taken.token
    assert taken.predecessor is None
