"""The programs at the server, and the reference (`_core.line`, through `MemoryStore`), side by side.

Both are driven with the same requests at the same moments. Time is put into the programs in place of the server's
clock, so that minutes of expiries, delays and lingering holds pass in milliseconds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from holdfast._core.line import Place
from holdfast.backends.execute import Moment, us
from holdfast.backends.memory.store import MemoryStore
from holdfast.backends.queue_backend import Allow, Evict, Recover, Release, Renew, Survey, Take, Taken
from holdfast.backends.redis.codec import NOWHERE, Codec, write
from holdfast.backends.redis.programs import VERBS, program, source
from holdfast.backends.redis.replies import one_taken
from holdfast.model import Claim, LockSpec, LockView
from tests.support.redis_server import RedisServer

CLOCK = "redis.call('TIME')"
NAMES = ("a", "b")
OWNERS = [f"0123456789abcdef-{n:x}" for n in range(5)]
START = 1_700_000_000_000_000


class ServerStore:
    """The programs at a real server, with a clock of ours."""

    def __init__(self, server: RedisServer, indexed: bool = True) -> None:
        self.client = server.client()
        self._codec = Codec("t", "host", 7, indexed=indexed)
        self._turns = 0
        self.alone = False
        """Nothing goes the way of many at once."""
        self._programs = {}
        for verb in VERBS:
            assert source(verb).count(CLOCK) == 1
            clocked = source(verb).replace(CLOCK, "{table.remove(ARGV, #ARGV - 1), table.remove(ARGV)}")
            self._programs[program(verb).source] = self.client.register_script(clocked)

    def key(self, name: str) -> bytes:
        return self._codec.line(name)

    def carry_out(self, request: Any, now: int) -> Any:
        if isinstance(request, Survey):
            keys = [self._codec.line(name) for name in NAMES if name.startswith(request.prefix)]
            order = self._codec.survey(keys)
        else:
            order = write(self._codec, request, NOWHERE)
            if (found := self._together(request, now)) is not None:
                return found
        words = order.words.split(b"\r\n")[1::2]
        keys, rest = words[1 : 1 + int(words[0])], words[1 + int(words[0]) :]
        assert len(words) == order.size
        called = self._programs[order.program.source]
        return order.read(called(keys=keys, args=[*rest, now // 1_000_000, now % 1_000_000]))

    def _together(self, request: Any, now: int) -> Any:
        """Every other request goes the way of many at once; None if it is to be made by itself."""
        self._turns += 1
        if self.alone:
            return None
        stamp = [now // 1_000_000, now % 1_000_000]
        match request:
            case Take(claims=[claim], queue=True) if self._turns % 2:
                kept = self._codec.of(claim.spec).words
                said, left = f"{claim.owner} {NOWHERE}{kept.before}{claim.actor}{kept.detail}".split("\r\n", 1)
                words = [said, left.split("\r\n")[1], "t/contended", *stamp]
                [reply] = self._programs[program("takes").source](keys=[self._codec.line(claim.spec.name)], args=words)
                return one_taken(reply) if reply else None
            case Release(claim=claim, linger=0.0) if self._turns % 2:
                words = [claim.owner, us(claim.spec.ttl), *stamp]
                [said] = self._programs[program("releases").source](
                    keys=[self._codec.line(claim.spec.name)], args=words
                )
                return None if said == 2 else bool(said)
        return None


def _exact(found: Any, expected: Any) -> Any:
    """What a waiter is told of those before it may count some who have left, and is never too few."""
    if not isinstance(found, list) or not all(isinstance(taken, Taken) for taken in found):
        return found
    pairs = zip(found, expected, strict=True)
    return [replace(taken, ahead=real.ahead) if taken.ahead > real.ahead else taken for taken, real in pairs]


@st.composite
def asks(draw: st.DrawFn, mixed: bool) -> LockSpec:
    """Of a mutex, or where `mixed` of anything. Mostly of one name, so that lines get long."""
    capacity, weight = draw(st.sampled_from([(3, 1), (3, 1), (3, 2), (3, 3), (1, 1)] if mixed else [(1, 1)]))
    return LockSpec(
        draw(st.sampled_from("aaab")),
        ttl=draw(st.sampled_from([30.0, 30.0, 0.5])),
        weight=weight,
        capacity=capacity,
        fair=draw(st.sampled_from([True, True, not mixed])),
        lock_delay=draw(st.sampled_from([0.0, 0.0, 2.0])),
        robust=draw(st.sampled_from([False, False, True])),
    )


owners = st.sampled_from(OWNERS)


class SameAsTheReference(RuleBasedStateMachine):
    server: RedisServer

    @initialize(mixed=st.booleans())
    def begin(self, mixed: bool) -> None:
        self.mixed = mixed
        self.server.raw("FLUSHALL")
        self.ours = ServerStore(self.server)
        self.reference = MemoryStore()
        self.now = START
        self.specs: dict[tuple[str, str], LockSpec] = {}
        self.tokens: list[tuple[str, int]] = []

    def teardown(self) -> None:
        self.ours.client.close()

    def both(self, request: Any) -> Any:
        self.now += 1  # no two verbs at one moment
        expected, _ = self.reference.carry_out(request, Moment(self.now, self.now, "", "host", 7))
        found = self.ours.carry_out(request, self.now)
        assert _exact(found, expected) == expected
        return found

    def claim(self, spec: LockSpec, owner: str) -> Claim:
        """An owner asks for a name in one way only, as the core sees to."""
        return Claim(self.specs.setdefault((spec.name, owner), spec), owner, "actor")

    @rule(data=st.data(), owner=owners, queue=st.sampled_from([True, True, False]))
    def take(self, data: st.DataObject, owner: str, queue: bool) -> None:
        spec = data.draw(asks(self.mixed))
        [taken] = self.both(Take((self.claim(spec, owner),), queue))
        self.remember(spec.name, taken)

    @rule(data=st.data(), owner=owners, queue=st.booleans())
    def take_both(self, data: st.DataObject, owner: str, queue: bool) -> None:
        spec = data.draw(asks(self.mixed))
        claims = [self.claim(replace(spec, name=name), owner) for name in NAMES]
        for name, taken in zip(NAMES, self.both(Take(claims, queue)), strict=True):
            self.remember(name, taken)

    def remember(self, name: str, taken: Taken) -> None:
        if taken.token:
            self.tokens.append((name, taken.token))

    @rule(name=st.sampled_from("aaab"), owner=owners, linger=st.sampled_from([0.0, 0.0, 0.0, 3.0]))
    def release(self, name: str, owner: str, linger: float) -> None:
        spec = self.specs.get((name, owner), LockSpec(name))
        self.both(Release(Claim(spec, owner, "actor"), linger))

    @rule(old=st.sampled_from([0, 0, 1]))
    def recover(self, old: int) -> None:
        for place in self.reference.load("a").places:
            if place.token and (spec := self.specs.get(("a", place.owner))) is not None:
                self.both(Recover(Claim(spec, place.owner, "actor", place.token - old)))
                return

    @rule(linger=st.sampled_from([0.0, 0.0, 3.0]))
    def release_the_holder(self, linger: float) -> None:
        for place in self.reference.load("a").places:
            if place.token and (spec := self.specs.get(("a", place.owner))) is not None:
                self.both(Release(Claim(spec, place.owner, "actor"), linger))
                return

    @precondition(lambda self: self.specs)
    @rule(off=st.sampled_from([0, 0, 1]))
    def renew(self, off: int) -> None:
        """All at once; sometimes with the token of another grant, which must not be renewed."""
        self.both(
            Renew(
                [
                    Claim(spec, owner, "actor", place.token - off if (place := self.place(name, owner)) else 7)
                    for (name, owner), spec in self.specs.items()
                ]
            )
        )

    def place(self, name: str, owner: str) -> Place | None:
        return self.reference.load(name).find(owner)

    @precondition(lambda self: self.tokens)
    @rule(data=st.data())
    def evict(self, data: st.DataObject) -> None:
        name, token = data.draw(st.sampled_from(self.tokens))
        self.both(Evict(name, token))

    @rule()
    def survey(self) -> None:
        found: list[LockView] = self.both(Survey(""))
        for view in found:
            self.tokens += [(view.name, claim.token) for claim in view.holders if claim.token]

    @rule(interval=st.sampled_from([0.1, 1.0]), cost=st.integers(1, 3), reserve=st.sampled_from([0.0, 2.0]))
    def allow(self, interval: float, cost: int, reserve: float) -> None:
        self.both(Allow("a", interval, 3, cost, reserve))

    @rule(seconds=st.sampled_from([0.0001, 0.3, 1.0, 4.0, 11.0, 11.0, 31.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += int(seconds * 1_000_000)

    @rule(seconds=st.sampled_from([0.3, 40.0]))
    def the_clock_is_set_back(self, seconds: float) -> None:
        """Nobody else is there, and the marks are ahead of the clock: tokens must still grow."""
        for name in NAMES:
            for owner in OWNERS:
                spec = self.specs.get((name, owner), LockSpec(name))
                self.both(Release(Claim(spec, owner, "actor"), 0.0))
        if not self.both(Survey("")) and not any(self.reference.load(name).places for name in NAMES):
            self.now -= int(seconds * 1_000_000)
