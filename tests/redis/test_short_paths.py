"""The programs' short paths do what the reference does: lines of one mutex, one request at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.backends.queue_backend import Evict, Release, Renew, Take
from holdfast.model import Claim, LockSpec
from tests.redis.reference import SameAsTheReference, ServerStore
from tests.support.redis_server import RedisServer


def beginning(machine: type[SameAsTheReference], store: ServerStore | None = None) -> SameAsTheReference:
    """Nothing goes the way of many at once. `store`: in place of the usual one."""
    both = machine()
    both.begin(False)
    if store is not None:
        both.ours.client.close()
        both.ours = store
    both.ours.alone = True
    return both


@st.composite
def crowds(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Many who want one mutex, one request after the other: they come and look, leave, are told, stay silent."""
    kinds = st.sampled_from(["take"] * 10 + ["release", "let go", "let go", "try", "renew", "evict", "time", "survey"])
    return draw(st.lists(st.tuples(kinds, st.integers(0, 8)), min_size=20, max_size=80))


SILENCES_S = (0.0001, 0.3, 1.0, 3.0, 9.0, 11.0, 20.0, 31.0, 4000.0)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=crowds(), times=st.lists(st.sampled_from([(30.0, 0.0), (30.0, 2.0), (9.0, 0.0)]), min_size=9, max_size=9))
def test_a_crowd_that_wants_one_mutex(
    machine: type[SameAsTheReference], steps: list[tuple[str, int]], times: list[tuple[float, float]]
) -> None:
    both = beginning(machine)  # all of them near: whoever stands behind eight others looks every third of its patience
    claims = [
        Claim(LockSpec("a", ttl=ttl, lock_delay=delay), f"0123456789abcdef-{number:x}", "actor")
        for number, (ttl, delay) in enumerate(times)
    ]
    both.specs = {("a", claim.owner): claim.spec for claim in claims}
    for kind, number in steps:
        if kind in ("take", "try"):
            [taken] = both.both(Take((claims[number],), kind == "take"))
            both.remember("a", taken)
        elif kind == "release":
            both.both(Release(claims[number], 0.0))
        elif kind == "let go":
            both.release_the_holder(0.0)
        elif kind == "renew":
            both.renew(0)
        elif kind == "evict" and both.tokens:
            both.both(Evict(*both.tokens[-1]))
        elif kind == "time":
            both.now += int(SILENCES_S[number] * 1_000_000)
        else:
            both.survey()
    both.teardown()


def test_a_long_line(machine: type[SameAsTheReference]) -> None:
    both = beginning(machine)
    claims = [Claim(LockSpec("a"), f"0123456789abcdef-{number:x}", "actor") for number in range(30)]
    for claim in claims[:20]:
        both.both(Take((claim,), True))
    for leaver, newcomer in zip(claims[:20], claims[10:], strict=True):
        both.both(Release(leaver, 0.0))
        both.both(Take((newcomer,), True))
        both.survey()
    both.teardown()


@pytest.mark.parametrize(
    ("before", "silence_s", "newcomer"),
    [
        ([("holder", 9.0, 2.0), ("leaver", 30.0, 0.0)], 9.5, 30.0),
        ([("holder", 11.0, 0.0), ("dead", 9.0, 0.0), ("leaver", 30.0, 0.0)], 10.0, 5.0),
    ],
    ids=["alone, while a delay lasts", "behind one that is dead"],
)
def test_who_comes_to_wait_looks_when_the_hold_may_be_over(
    machine: type[SameAsTheReference], before: list[tuple[str, float, float]], silence_s: float, newcomer: float
) -> None:
    both = beginning(machine)
    claims = [Claim(LockSpec("a", ttl=ttl, lock_delay=delay), owner, "actor") for owner, ttl, delay in before]
    for claim in claims:
        both.both(Take((claim,), True))
    both.both(Release(claims[-1], 0.0))
    both.now += int(silence_s * 1_000_000)
    both.both(Take((Claim(LockSpec("a", ttl=newcomer), "newcomer", "actor"),), True))
    both.teardown()


@pytest.mark.parametrize("indexed", [True, False])
def test_a_line_stands_and_is_noted_as_long_as_somebody_waits(
    machine: type[SameAsTheReference], server: RedisServer, indexed: bool
) -> None:
    """For two hours somebody holds it and somebody waits, and others come and go."""
    both = beginning(machine, ServerStore(server, indexed))
    holder, waiter, *others = [Claim(LockSpec("a"), f"0123456789abcdef-{number:x}", "actor") for number in range(900)]
    [taken] = both.both(Take((holder,), True))
    both.both(Take((waiter,), True))
    for other in others:
        both.now += 8_000_000
        both.both(Renew([replace(holder, token=taken.token)]))
        both.both(Take((other,), True))
        header = str(both.ours.client.hget(both.ours.key("a"), "="), "ascii").split()
        ends = both.now + 10_000_000
        assert int(header[2]) >= ends + 86_400_000_000
        assert int(header[3]) >= ends or not indexed
        both.both(Take((waiter,), True))
        both.both(Release(other, 0.0))
    both.teardown()


def test_a_line_stands_that_nobody_renews(machine: type[SameAsTheReference], server: RedisServer) -> None:
    """For two hours it is handed over, and somebody comes, by short paths alone, as in a cluster."""
    both = beginning(machine, ServerStore(server, indexed=False))
    claims = [Claim(LockSpec("a"), f"0123456789abcdef-{number:x}", "actor") for number in range(1802)]
    for claim in claims[:2]:
        both.both(Take((claim,), True))
    for holder, newcomer in zip(claims, claims[2:], strict=False):
        both.now += 4_000_000
        both.both(Take((newcomer,), True))
        header = str(both.ours.client.hget(both.ours.key("a"), "="), "ascii").split()
        assert int(header[2]) >= both.now + 10_000_000 + 86_400_000_000
        both.both(Release(holder, 0.0))
    both.teardown()
