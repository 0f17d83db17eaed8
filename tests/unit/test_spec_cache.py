"""The same question is the same ask again; what is wrong is refused each time."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import Misconfigured
from holdfast.recipes.spec_cache import KEPT_COUNT, SpecCache


def mutexes() -> SpecCache:
    return SpecCache({"ttl": 30.0, "timeout": None})


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


def test_it_does_not_grow_for_ever() -> None:
    specs = mutexes()
    for number in range(3 * KEPT_COUNT):
        specs.get(f"n{number}", {})
    assert len(specs._specs) <= KEPT_COUNT


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
    for number in range(3 * KEPT_COUNT):
        specs.changed(specs.get(f"n{number}", {}), {"timeout": 0})
    assert len(specs._changed) <= KEPT_COUNT
