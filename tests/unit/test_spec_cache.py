"""The same question is the same ask again; what is wrong is refused each time."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import Misconfigured
from holdfast.recipes.options import Options
from holdfast.recipes.spec_cache import NAMES_COUNT, SETS_COUNT, SpecCache
from holdfast.recipes.specs import mutex, permit, reader, writer


def mutexes() -> SpecCache:
    return SpecCache({"ttl": 30.0, "timeout": None})


def count(specs: SpecCache) -> int:
    return sum(len(names) for _, names in specs._sets.values())


def test_the_same_question_is_the_same_ask() -> None:
    specs = mutexes()
    assert specs.get("a", {}) is specs.get("a", {})
    assert specs.get("a", {"ttl": 5}) is specs.get("a", {"ttl": 5})


def test_another_question_is_another_ask() -> None:
    specs = mutexes()
    assert specs.get("a", {}).name == "a"
    assert specs.get("b", {}).name == "b"
    assert specs.get("a", {"ttl": 5}).ttl == 5
    assert specs.get("a", {"timeout": 5}).timeout == 5
    assert specs.get("a", {}).ttl == 30.0


@pytest.mark.parametrize("wrong", [True, [1], "1", -1])
def test_what_is_wrong_is_refused_each_time(wrong: Any) -> None:
    specs = mutexes()
    specs.get("a", {"ttl": 1})
    for _ in range(2):
        with pytest.raises(Misconfigured):
            specs.get("a", {"ttl": wrong})


@pytest.mark.parametrize("wrong", [1, ["a"], b"a", ""])
def test_a_name_that_is_wrong_is_refused_each_time(wrong: Any) -> None:
    specs = mutexes()
    for _ in range(2):
        with pytest.raises(Misconfigured):
            specs.get(wrong, {})


def test_another_name_is_as_one_that_was_made_anew_and_shares_what_is_prepared() -> None:
    specs, others = mutexes(), mutexes()
    several: tuple[Options, ...] = ({}, {"ttl": 5, "timeout": 1.5, "fair": False, "margin": 1})
    for options in several:
        for kind in (mutex, reader, writer):
            one, other = specs.get("a", options, kind), specs.get("b", options, kind)
            assert other == others.get("b", options, kind)
            assert other.option_set is one.option_set
            assert specs.changed(other, {"timeout": 0}).option_set is specs.changed(one, {"timeout": 0}).option_set
    assert specs.get("a", {}).option_set is not specs.get("a", {"ttl": 5}).option_set
    two, three = specs.get("a", {}, permit, 2, 1), specs.get("a", {}, permit, 3, 1)
    assert (two.capacity, three.capacity) == (2, 3)
    wrongs: tuple[Any, ...] = (True, 0, 1.0, [2])
    for wrong in wrongs:
        for _ in range(2):
            with pytest.raises(Misconfigured):
                specs.get("a", {}, permit, wrong, 1)


def test_it_does_not_grow_for_ever() -> None:
    specs = mutexes()
    for number in range(3 * NAMES_COUNT):
        specs.get(f"n{number}", {})
    assert count(specs) <= NAMES_COUNT
    for number in range(3 * SETS_COUNT):
        specs.get("a", {"ttl": 1.0 + number})
    assert count(specs) <= SETS_COUNT


def test_the_same_options_of_a_call_are_the_same_ask() -> None:
    specs = mutexes()
    one, other = specs.get("a", {}), specs.get("b", {})
    assert specs.changed(one, {"timeout": 0}) is specs.changed(one, {"timeout": 0})
    assert specs.changed(one, {"timeout": 0}).timeout == 0
    assert specs.changed(other, {"timeout": 0}).name == "b"
    assert specs.changed(one, {"timeout": 1}).timeout == 1
    for _ in range(2):
        with pytest.raises(Misconfigured):
            specs.changed(one, {"timeout": False})


def test_nor_do_the_options_of_calls() -> None:
    specs = mutexes()
    for number in range(3 * NAMES_COUNT):
        specs.changed(specs.get(f"n{number}", {}), {"timeout": 0})
    assert count(specs) <= 2 * NAMES_COUNT
