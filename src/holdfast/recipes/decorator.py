"""What a recipe may decorate, or an election may run: a function whose work is done when it returns.

A coroutine function under a blocking lock, or a generator function under any, returns before its body has begun: the
lock would be released first, and would protect nothing. So they are refused, before anything is locked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..errors import Misconfigured


def check_blocking(function: Callable[..., Any], recipe: str, verb: str = "decorate") -> None:
    """For a recipe of the blocking API: raises `Misconfigured` unless `function` is a plain one."""
    _check_callable(function, recipe, verb)
    if _is(inspect.iscoroutinefunction, function):
        raise Misconfigured(
            f"{recipe} is of the blocking API and cannot {verb} the coroutine function {_name(function)}: it would "
            "be released before the body runs; use holdfast.aio, or run the body in a thread"
        )
    _check_generator(function, recipe, verb)


def check_awaited(function: Callable[..., Any], recipe: str, verb: str = "decorate") -> None:
    """For a recipe of `holdfast.aio`: raises `Misconfigured` for generators and for what cannot be awaited."""
    _check_callable(function, recipe, verb)
    _check_generator(function, recipe, verb)
    inner = inspect.unwrap(function)
    if inspect.isfunction(inner) and not (
        _is(inspect.iscoroutinefunction, function) or inspect.iscoroutinefunction(inner)
    ):
        raise Misconfigured(
            f"{recipe} is of holdfast.aio and cannot {verb} the plain function {_name(function)}: write `async def`, "
            "or use a lock of the blocking API"
        )


def refuse_coroutine(result: object, function: Callable[..., Any], recipe: str) -> None:
    """A plain function that returned a coroutine: its body has not run, and the lock is about to be released."""
    if inspect.iscoroutine(result):
        result.close()
        raise Misconfigured(
            f"{_name(function)}, under {recipe}, returned a coroutine, whose body would run without the lock; "
            "use holdfast.aio"
        )


def _check_callable(function: object, recipe: str, verb: str) -> None:
    if not callable(function) or isinstance(function, type):
        raise Misconfigured(f"{recipe} {verb}s functions, not {function!r}")


def _check_generator(function: Callable[..., Any], recipe: str, verb: str) -> None:
    if _is(inspect.isgeneratorfunction, function) or _is(inspect.isasyncgenfunction, function):
        raise Misconfigured(
            f"{recipe} cannot {verb} the generator function {_name(function)}: it would be released before the body "
            "runs; take the lock inside of it, with a `with` around the part that needs it"
        )


def _is(kind: Callable[[Any], bool], function: Callable[..., Any]) -> bool:
    """Whether it is of this kind itself, or by its `__call__`."""
    return kind(function) or kind(type(function).__call__)


def _name(function: Callable[..., Any]) -> str:
    return repr(getattr(function, "__qualname__", function))
