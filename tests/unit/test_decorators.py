"""A recipe decorates only what is done when it returns: everything else would run without its lock."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.errors import Misconfigured


async def coroutine() -> None: ...


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


class Awaited:
    async def __call__(self) -> None: ...


def plain() -> int:
    return 1


def recipes(locks: Any) -> list[Any]:
    return [
        locks.lock("a"),
        locks.reentrant("b"),
        locks.rwlock("c").read(),
        locks.semaphore("d", permits=2),
        locks.lock_all(["e", "f"]),
        locks.limiter("g", "5/s"),
    ]


@pytest.mark.parametrize(
    "function",
    [coroutine, generator, async_generator, Awaited(), functools.partial(coroutine), functools.partial(generator)],
)
def test_a_blocking_recipe_refuses_what_runs_later(function: Callable[..., Any]) -> None:
    with holdfast.connect("memory://") as locks:
        for recipe in recipes(locks):
            with pytest.raises(Misconfigured, match="before the body runs"):
                recipe(function)


@pytest.mark.parametrize(
    ("function", "why"), [(generator, "generator"), (async_generator, "generator"), (plain, "async def")]
)
def test_a_recipe_of_asyncio_refuses_what_is_not_awaited(function: Callable[..., Any], why: str) -> None:
    async def main() -> None:
        async with holdfast.aio.connect("memory://") as locks:
            for recipe in recipes(locks):
                with pytest.raises(Misconfigured, match=why):
                    recipe(function)

    asyncio.run(main())


def test_a_class_or_a_value_is_refused() -> None:
    with holdfast.connect("memory://") as locks:
        for thing in (int, 5, "nightly"):
            with pytest.raises(Misconfigured, match="decorates functions"):
                locks.lock("a")(thing)  # type: ignore[arg-type]


def test_a_coroutine_that_a_plain_function_returns_is_refused_and_closed() -> None:
    with holdfast.connect("memory://") as locks:

        @locks.lock("a")
        def work() -> Any:
            return coroutine()

        with pytest.raises(Misconfigured, match="returned a coroutine"):
            work()
        assert locks.survey("a") == []


def test_what_awaits_in_disguise_is_taken() -> None:
    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any) -> Any:
            return function(*args)

        return call

    async def main() -> None:
        async with holdfast.aio.connect("memory://") as locks:
            for function in (wrapped(coroutine), Awaited(), functools.partial(coroutine)):
                await locks.lock("a")(function)()

    asyncio.run(main())
